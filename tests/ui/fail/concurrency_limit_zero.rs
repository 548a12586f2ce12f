use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 0, lease = "30s"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
