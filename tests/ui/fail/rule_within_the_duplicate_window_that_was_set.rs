use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate(per = "30s"), rule(count = 10, per = "20s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
