use tallygate::{Rejection, rate_limit};

#[rate_limit(in_flight(limit = 10, lease = "30s"))]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
