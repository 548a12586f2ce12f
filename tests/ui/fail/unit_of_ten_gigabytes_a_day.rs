use tallygate::{Rejection, rate_limit};

#[rate_limit(
    unit("bytes", cost = max_tokens),
    rule(count = 10_000_000_000, per = "1d", unit = "bytes")
)]
async fn chat(prompt: &str, max_tokens: u64) -> Result<(), Rejection> {
    println!("{prompt} {max_tokens}");
    Ok(())
}

fn main() {}
