use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1, per = "60s"), prevent_duplicate, warn_at = 0.8)]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
