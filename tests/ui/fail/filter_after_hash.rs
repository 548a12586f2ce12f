use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{email:hash:lower:trim}", rule(count = 10, per = "60s"))]
async fn send_code(email: &str) -> Result<(), Rejection> {
    let _ = email;
    Ok(())
}

fn main() {}
