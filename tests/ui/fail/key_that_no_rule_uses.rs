use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{phone}", rule(count = 10, per = "60s", key = "all"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
