use tallygate::{Rejection, rate_limit};

#[rate_limit(until = "body", concurrency(limit = 2, lease = "30s"))]
fn export() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
