use tallygate::{OnOutage, Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"), on_outage = OnOutage::Local)]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
