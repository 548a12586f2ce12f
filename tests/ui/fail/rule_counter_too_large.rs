use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 100_000_000, per = "60s", algorithm = "sliding_counter"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
