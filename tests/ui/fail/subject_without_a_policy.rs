use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), key = "{phone}", subject("network", "{ip}"))]
async fn send_code(phone: &str, ip: &str) -> Result<(), Rejection> {
    let _ = (phone, ip);
    Ok(())
}

fn main() {}
