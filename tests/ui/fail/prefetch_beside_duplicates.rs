use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "60s"), prevent_duplicate(per = "10ms"), prefetch = "100ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
