use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate, settle = used)]
async fn complete(prompt: &str) -> Result<u64, Rejection> {
    Ok(7)
}

fn main() {}
