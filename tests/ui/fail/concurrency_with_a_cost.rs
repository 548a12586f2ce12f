use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 10, lease = "30s", cost = 2))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
