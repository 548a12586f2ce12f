use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, cron = "@daily"), rule(count = 20, per = "60s"))]
async fn f() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
