use tallygate::{Rejection, rate_limit};

#[rate_limit(policy = POLICY, concurrency(limit = 10, lease = "30s"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
