use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 10, per = "60s", key = "{phone}"),
    rule(count = 20, per = "60s", key = "{phone}")
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
