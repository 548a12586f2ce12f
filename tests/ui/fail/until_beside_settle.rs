use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 10_000, per = "60s"),
    until = "body",
    concurrency(limit = 2, lease = "30s"),
    cost = 500,
    settle = |_| tokens()
)]
async fn answer() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
