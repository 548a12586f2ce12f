use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
async fn count() -> Result<u32, Rejection> {
    Ok(counted)
}

fn main() {}
