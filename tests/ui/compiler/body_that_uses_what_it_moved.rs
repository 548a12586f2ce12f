use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
async fn count(text: String) -> Result<usize, Rejection> {
    drop(text);
    Ok(text.len())
}

fn main() {}
