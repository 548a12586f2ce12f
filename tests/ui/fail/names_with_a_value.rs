use tallygate::{Rejection, rate_limit};

#[rate_limit(
    name = "sms.$phone",
    rule(count = 10, per = "60s", name = "@ip"),
    concurrency(limit = 3, lease = "30s", name = "of %s"),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
