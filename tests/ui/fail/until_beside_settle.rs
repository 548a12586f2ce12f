use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 10_000, per = "60s"),
    concurrency(limit = 2, lease = "30s", until = "body"),
    cost = 500,
    settle = |_| tokens()
)]
async fn answer() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
