use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1, per = "1h", algorithm = "token_bucket", capacity = 5, reset_after = "10s"))]
async fn f() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
