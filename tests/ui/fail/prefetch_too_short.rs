use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "60s"), prefetch = "5ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
