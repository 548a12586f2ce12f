use tallygate::{Rejection, rate_limit};

#[rate_limit(key = format!("sms:{}/{prefix}", user.id), rule(count = 10, per = "60s"))]
async fn send_code(user: &str, prefix: &str) -> Result<(), Rejection> {
    let _ = (user, prefix);
    Ok(())
}

fn main() {}
