use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 0, per = "60s"), check_fn = send_code_limit)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

async fn peek() {
    let _ = send_code_limit("138").peek().await;
}

fn main() {}
