use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), openapi = Self)]
async fn draw() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
