use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{user}",
    rule(count = 10_000, per = "60s", unit = "tokens"),
    unit("tokens", settle = metered),
    prevent_duplicate(release_if = Result::is_err)
)]
async fn answer(user: &str) -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
