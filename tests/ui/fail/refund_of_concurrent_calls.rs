use tallygate::{Rejection, rate_limit};

#[rate_limit(concurrency(limit = 10, lease = "30s"), refund_if = Result::is_err)]
async fn export(user: &str) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
