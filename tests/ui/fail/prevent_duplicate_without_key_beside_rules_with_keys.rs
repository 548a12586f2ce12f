use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate, rule(count = 10, per = "60s", key = "{phone}"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
