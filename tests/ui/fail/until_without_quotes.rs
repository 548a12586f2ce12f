use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 2, lease = "30s"), until = body)]
async fn export() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
