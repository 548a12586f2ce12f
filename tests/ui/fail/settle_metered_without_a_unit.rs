use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10_000, per = "60s"), cost = 500, settle = metered)]
async fn answer() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
