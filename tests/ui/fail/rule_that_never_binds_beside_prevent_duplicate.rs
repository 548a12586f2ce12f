use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{phone}", prevent_duplicate, rule(count = 20, per = "60s"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
