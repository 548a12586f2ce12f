use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{prompt}",
    rule(count = 20_000, per = "60s", unit = "tokens"),
    rule(count = 9, per = "1s", key = "all"),
    refund_if = Result::is_err,
    refund_key = "all",
    unit("tokens", settle = used)
)]
async fn chat(prompt: &str, max_tokens: u64) -> Result<(), Rejection> {
    println!("{prompt} {max_tokens}");
    Ok(())
}

fn main() {}
