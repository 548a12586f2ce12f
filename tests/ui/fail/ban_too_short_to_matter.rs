use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), ban(denials = 20, within = "10m", duration = "5s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
