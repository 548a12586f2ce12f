use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
async fn count(number: u32) -> Result<u32, Rejection> {
    drop(number);
}

fn main() {}
