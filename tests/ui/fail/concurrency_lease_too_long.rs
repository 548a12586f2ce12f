use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 10, lease = "2h"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
