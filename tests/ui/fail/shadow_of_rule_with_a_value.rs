use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), rule(count = 5, per = "60s", shadow = true))]
async fn send_code() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
