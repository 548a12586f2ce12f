use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{account}", rule(count = 50, per = "1s"), rule(count = 500, per = "1s", key = "{host}"),
    pause_key = "{account}"
)]
async fn charge(account: &str, host: &str) -> Result<(), Rejection> {
    let _ = (account, host);
    Ok(())
}

fn main() {}
