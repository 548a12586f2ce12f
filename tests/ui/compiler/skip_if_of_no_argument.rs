use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), skip_if = phnoe.is_empty())]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
