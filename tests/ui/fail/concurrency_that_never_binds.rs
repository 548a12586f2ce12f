use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{id}", concurrency(limit = 5, lease = "30s"), concurrency(limit = 5, lease = "30s", key = "all"))]
async fn f(id: u32) -> Result<(), Rejection> {
    let _ = id;
    Ok(())
}

fn main() {}
