use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{phone}",
    rule(count = 1, per = "60s"),
    prevent_duplicate(per = "5s", release_if = Result::is_err),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
