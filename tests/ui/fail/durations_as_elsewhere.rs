use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 1, per = 60),
    rule(count = 2, per = "PT2M"),
    rule(count = 3, per = "3 minutes", algorithm = "token_bucket", reset_after = "1min"),
    prevent_duplicate(per = "5"),
    concurrency(limit = 3, lease = Duration::from_secs(30)),
    ban(denials = 9, within = "10 min", duration = 3600),
    wait = 2,
    deadline = "50",
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
