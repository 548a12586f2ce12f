use tallygate::{Rejection, rate_limit};

#[rate_limit(
    message = "try again in @retry_after",
    rule(count = 10, per = "60s", message = "no more codes for {{phone}}"),
    prevent_duplicate(message = "try again in %s"),
    concurrency(limit = 3, lease = "30s", message = "$phone is busy"),
    ban(denials = 20, within = "10m", duration = "1h", message = "banned until {{@retry_after}}"),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
