use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{phone}",
    rule(count = 10, per = "60s"),
    ban(count = 20, per = "10m", ttl = "1h"),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
