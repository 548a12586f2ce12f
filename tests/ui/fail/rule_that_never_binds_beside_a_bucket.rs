use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1, per = "1s", algorithm = "token_bucket"), rule(count = 100_000, per = "1d"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
