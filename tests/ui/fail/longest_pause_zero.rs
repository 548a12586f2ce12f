use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), longest_pause = "0s")]
async fn charge() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
