use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "60s"), concurrency(limit = 10, lease = "30s"), prefetch = "100ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
