use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{phone}",
    rule(count = 10, per = "60s", key = "{phnoe}", settle),
    ban(denials = 0, within = "10m"),
    cost = 11,
    wait = "0s",
    skip = true
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
