use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{from}.{to}", rule(count = 10, per = "60s"))]
async fn transfer(from: u32, to: u32) -> Result<(), Rejection> {
    let _ = (from, to);
    Ok(())
}

fn main() {}
