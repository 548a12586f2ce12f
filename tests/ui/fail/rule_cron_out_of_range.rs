use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, cron = "0 0 24 * * *"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
