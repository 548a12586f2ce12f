use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{@ip:debug}", rule(count = 10, per = "60s"))]
async fn submit() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
