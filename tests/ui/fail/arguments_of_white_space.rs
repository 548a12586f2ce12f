use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 10, per = " ", algorithm = " "),
    rule(count = 10, cron = " ", tz = " "),
    rule(count = 10, per = "60s", algorithm = "token_bucket", reset_after = " "),
    concurrency(limit = 3, lease = " "),
    ban(denials = 20, within = " ", duration = " "),
    on_outage = " ",
    deadline = " ",
    wait = " ",
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
