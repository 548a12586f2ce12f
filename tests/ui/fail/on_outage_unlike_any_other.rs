use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), on_outage = "sometimes")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
