use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "sms:%s",
    rule(count = 10, per = "60s", key = "#phone"),
    prevent_duplicate(key = "*"),
    concurrency(limit = 3, lease = "30s", key = "[phone]"),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

#[rate_limit(policy = SMS, key = "{phone}", subject("network", "@ip:subnet"))]
async fn send_text(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
