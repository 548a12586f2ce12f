use tallygate::{Rejection, rate_limit};

#[rate_limit(prevent_duplicate(release_if = Result::is_err), rule(count = 10, per = "60s", key = "prevent_duplicate"))]
async fn submit(form: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
