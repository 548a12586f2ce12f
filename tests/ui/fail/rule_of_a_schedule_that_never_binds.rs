use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 1, per = "1s", algorithm = "token_bucket"), rule(count = 100000, cron = "@daily"))]
async fn f() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
