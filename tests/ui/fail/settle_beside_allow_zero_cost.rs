use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), cost = prompt.len() as u64, allow_zero_cost, settle = used)]
async fn complete(prompt: &str) -> Result<u64, Rejection> {
    Ok(7)
}

fn main() {}
