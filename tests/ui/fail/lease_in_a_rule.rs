use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s", lease = "30s"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
