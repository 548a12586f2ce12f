use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{user}", rule(count = 1000, per = "60s"), rule(count = 9000, per = "60s", key = "all"), prefetch = "100ms")]
async fn search(user: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
