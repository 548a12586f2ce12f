use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{a}", rule(count = 5, per = "60s"), rule(count = 10, per = "2m", key = "{a}:{b}"))]
async fn f(a: &str, b: u32) -> Result<(), Rejection> {
    let _ = (a, b);
    Ok(())
}

fn main() {}
