use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{@user|@ip|@user:lower}", rule(count = 10, per = "60s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
