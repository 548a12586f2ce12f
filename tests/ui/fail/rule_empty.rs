use tallygate::{Rejection, rate_limit};

#[rate_limit(rule())]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
