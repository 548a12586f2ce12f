use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), ban(denials = 20, within = "0s", duration = "1"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
