use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), prevent_duplicate(release_if = Result::is_err), settle = used)]
async fn complete(prompt: &str) -> Result<u64, Rejection> {
    Ok(7)
}

fn main() {}
