use tallygate::{Rejection, rate_limit};

#[rate_limit(
    policy = phone,
    name = "sms",
    rule(count = 10, per = "60s"),
    prevent_duplicate,
    ban(denials = 20, within = "10m", duration = "1h")
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
