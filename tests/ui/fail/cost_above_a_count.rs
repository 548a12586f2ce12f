use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 100, per = "1h"), rule(count = 10, per = "60s"), cost = 20)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
