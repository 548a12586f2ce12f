use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 20_000, per = "60s", unit = "tokens"),
    until = "body",
    concurrency(limit = 3, lease = "30s"),
    unit("tokens", settle = used)
)]
async fn chat(prompt: &str, max_tokens: u64) -> Result<(), Rejection> {
    println!("{prompt} {max_tokens}");
    Ok(())
}

fn main() {}
