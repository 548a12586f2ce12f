use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), prevent_duplicate(per = "5s", shadow))]
async fn send_code() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
