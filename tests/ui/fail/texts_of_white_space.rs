use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = " ",
    name = "\t",
    message = "\n",
    rule(count = 10, per = "60s", key = " ", name = " ", message = " "),
    prevent_duplicate(key = " ", message = " "),
    concurrency(limit = 3, lease = "30s", key = " ", name = "  ", message = " "),
    ban(denials = 20, within = "10m", duration = "1h", message = " "),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
