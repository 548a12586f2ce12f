use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 60000, per = "60s", unit = "tokens", algorithm = "token_bucket", capacity = 700),
    unit("tokens", cost = 650),
    prefetch = "100ms"
)]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
