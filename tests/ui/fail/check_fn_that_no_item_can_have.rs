use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), check_fn = crate)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
