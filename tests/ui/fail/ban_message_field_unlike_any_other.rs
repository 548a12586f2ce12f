use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{phone}",
    rule(count = 10, per = "60s"),
    ban(denials = 20, within = "10m", duration = "1h", message = "out, {@user}"),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
