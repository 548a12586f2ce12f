use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{user}",
    concurrency(limit = 2, lease = "30s", until = "body"),
    concurrency(limit = 100, lease = "30s", key = "all")
)]
async fn export(user: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
