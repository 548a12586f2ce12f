use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), settle = 7)]
async fn complete(prompt: &str) -> Result<u64, Rejection> {
    Ok(7)
}

fn main() {}
