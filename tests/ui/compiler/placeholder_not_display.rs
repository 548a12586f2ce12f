use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{phones}", rule(count = 10, per = "60s"))]
async fn send_codes(phones: Vec<String>) -> Result<(), Rejection> {
    let _ = phones;
    Ok(())
}

fn main() {}
