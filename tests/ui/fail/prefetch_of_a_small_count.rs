use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 5, per = "60s"), prefetch = "100ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
