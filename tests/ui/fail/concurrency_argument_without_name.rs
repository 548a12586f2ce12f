use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(10))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
