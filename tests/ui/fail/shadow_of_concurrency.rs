use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 10, lease = "30s", shadow))]
async fn send_code() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
