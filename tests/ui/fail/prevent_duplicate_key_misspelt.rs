use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate(key = "{phnoe}"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("{phone}");
    Ok(())
}

fn main() {}
