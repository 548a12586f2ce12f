use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{address:subnet(24, 56, 8)}", rule(count = 10, per = "60s"))]
async fn send_code(address: &str) -> Result<(), Rejection> {
    let _ = address;
    Ok(())
}

fn main() {}
