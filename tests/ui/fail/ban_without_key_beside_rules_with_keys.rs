use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 10, per = "60s", key = "{phone}"),
    ban(denials = 20, within = "10m", duration = "1h")
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
