use tallygate::{Rejection, rate_limit};

#[rate_limit(limit = 5, window = "60s", by = "{phone}", dry_run)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
