use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{*}", rule(count = 10, per = "60s"))]
async fn export(user: &str, _: Order) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
