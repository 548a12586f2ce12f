use tallygate::{Rejection, rate_limit};

#[rate_limit(policy = SMS, key = "{phone}")]
#[rate_limit(policy = SMS, key = "{phone}", cost = 2)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
