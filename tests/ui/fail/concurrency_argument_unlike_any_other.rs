use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 10, lease = "30s", algorithm = "log"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
