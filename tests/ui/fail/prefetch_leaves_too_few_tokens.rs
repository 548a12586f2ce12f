use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "1s", algorithm = "token_bucket", capacity = 103), cost = 5, prefetch = "100ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
