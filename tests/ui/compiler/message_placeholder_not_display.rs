use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s", message = "not now, {phones}"))]
async fn send_codes(phones: Vec<String>) -> Result<(), Rejection> {
    let _ = phones;
    Ok(())
}

fn main() {}
