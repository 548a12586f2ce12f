use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate, cost = phone.len() as u64)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
