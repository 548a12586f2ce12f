use tallygate::{Rejection, rate_limit};

#[rate_limit(
    policy = LOGINS,
    key = "{user}",
    subject("network", "{ip}"),
    refund_if = Result::is_err,
    refund_key = "all"
)]
async fn login(user: &str, ip: &str) -> Result<(), Rejection> {
    let _ = (user, ip);
    Ok(())
}

fn main() {}
