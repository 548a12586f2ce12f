use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "50ms"), prefetch = "10ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
