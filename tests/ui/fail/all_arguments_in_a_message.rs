use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), message = "not again: {*}")]
async fn submit(form: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
