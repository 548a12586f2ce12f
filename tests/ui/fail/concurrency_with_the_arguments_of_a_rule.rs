use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(count = 10, per = "30s"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
