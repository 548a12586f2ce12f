use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate, rule(count = 1, per = "3s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
