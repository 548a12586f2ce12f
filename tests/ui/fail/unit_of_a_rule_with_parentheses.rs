use tallygate::{Rejection, rate_limit};

#[rate_limit(
    unit("tokens", cost = max_tokens),
    rule(count = 20_000, per = "60s", unit("tokens"))
)]
async fn chat(prompt: &str, max_tokens: u64) -> Result<(), Rejection> {
    println!("{prompt} {max_tokens}");
    Ok(())
}

fn main() {}
