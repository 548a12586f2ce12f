use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate(release_if = "is_err"))]
async fn submit(form: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
