use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "1s"), prefetch = "200ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
