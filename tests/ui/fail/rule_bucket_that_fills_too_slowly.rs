use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1, per = "1d", algorithm = "token_bucket", capacity = 4000))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
