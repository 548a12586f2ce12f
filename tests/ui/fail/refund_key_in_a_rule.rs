use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{ip}",
    rule(count = 10, per = "60s"),
    rule(count = 5, per = "60s", key = "{user}", refund_key = "{user}"),
    refund_if = Result::is_err,
)]
async fn login(user: &str, ip: &str) -> Result<(), Rejection> {
    let _ = (user, ip);
    Ok(())
}

fn main() {}
