use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{phone}", rule(count = 5, per = "60s"), rule(count = 5, per = "60s", key = "all"))]
async fn f(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
