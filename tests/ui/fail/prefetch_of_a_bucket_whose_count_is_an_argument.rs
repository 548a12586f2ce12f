use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = calls, per = "60s", algorithm = "token_bucket"), prefetch = "100ms")]
async fn search(calls: u64) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
