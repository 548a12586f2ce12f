use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 2, per = "30s"), until = "body")]
async fn export() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
