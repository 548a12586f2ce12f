use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{phone}", rule(count = 10, per = "60s"))]
async fn send_code(_: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
