use tallygate::{Rejection, rate_limit};

#[rate_limit(
    per_second = 5,
    requests_per_minute = 100,
    rule(rps = 5),
    rule(per_hour = 1000),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
