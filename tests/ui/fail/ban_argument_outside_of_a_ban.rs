use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), denials = 20)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
