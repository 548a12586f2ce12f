use tallygate::{Rejection, rate_limit};

#[rate_limit(name = "sms", key = "{phone}", rule(count = 10, per = "60s"))]
#[rate_limit(name = "sms", key = "{network}", rule(count = 20, per = "60s"))]
async fn send_code(phone: &str, network: &str) -> Result<(), Rejection> {
    let _ = (phone, network);
    Ok(())
}

fn main() {}
