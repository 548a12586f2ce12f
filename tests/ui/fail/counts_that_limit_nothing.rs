use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = u64::MAX, per = "60s"), concurrency(limit = u64::MAX, lease = "30s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
