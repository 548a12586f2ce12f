use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "sms:{phone}", rule(count = 10, per = "60s"))]
async fn tick() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
