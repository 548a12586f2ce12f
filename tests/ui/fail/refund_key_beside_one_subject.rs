use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{user}", rule(count = 5, per = "60s"), refund_if = Result::is_err, refund_key = "{user}")]
async fn login(user: &str, ip: &str) -> Result<(), Rejection> {
    let _ = (user, ip);
    Ok(())
}

fn main() {}
