use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{user}", rule(count = 10, per = "60s"), rule(count = 90, per = "60s", key = "all"), prefetch = "100ms")]
async fn search(user: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
