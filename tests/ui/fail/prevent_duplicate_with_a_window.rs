use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{phone}", prevent_duplicate = "30s")]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
