use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{account}", rule(count = 50, per = "1s"), rule(count = 500, per = "1s", key = "{host}"),
    pause = |_| None, pause_key = "{hosts}"
)]
async fn charge(account: &str, host: &str) -> Result<(), Rejection> {
    let _ = (account, host);
    Ok(())
}

fn main() {}
