use tallygate::{Rejection, rate_limit};

#[rate_limit(policy = phone)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
