use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1_000_000, per = "1d", algorithm = "token_bucket"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
