use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 20, per = "60s"), rule(count = 10, per = "60s", algorithm = "fixed_window"))]
async fn f() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
