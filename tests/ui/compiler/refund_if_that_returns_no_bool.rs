use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), refund_if = |result| result.is_err().then_some(1))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
