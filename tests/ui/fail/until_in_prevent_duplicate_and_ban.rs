use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{user}",
    prevent_duplicate(until = "body"),
    ban(denials = 20, within = "10m", duration = "1h", until = "body")
)]
async fn export(user: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
