use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), warn_at = 0.0)]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
