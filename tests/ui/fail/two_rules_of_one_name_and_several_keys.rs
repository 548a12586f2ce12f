use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 10, per = "60s", name = "a"),
    rule(count = 5, per = "60s", name = "a", key = "{phone}")
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
