use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), key = "{phone}")]
async fn send_code(phone: Option<String>) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
