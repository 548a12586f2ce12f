use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 3_000_000_000, per = "60s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
