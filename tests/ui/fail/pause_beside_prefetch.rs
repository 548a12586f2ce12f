use std::time::Duration;

use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1000, per = "60s"), prefetch = "100ms", pause = |_| None::<Duration>)]
async fn charge() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
