use tallygate::{Rejection, rate_limit};

#[rate_limit(
    "10/m",
    rule = "10 requests/min",
    rules = ["1/s", "100 per hour"],
    rule("5/s burst 10"),
    rule(count = "10/minute"),
    limits = "10r/s",
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
