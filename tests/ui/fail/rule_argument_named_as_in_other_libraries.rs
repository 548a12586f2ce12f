use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(limit = 5, interval = "60s", by = "{phone}"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
