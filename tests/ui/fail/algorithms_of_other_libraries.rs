use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(count = 1, per = "1s", algorithm = "gcra"),
    rule(count = 2, per = "2s", algorithm = "leaky-bucket"),
    rule(count = 3, per = "3s", algorithm = "moving-window"),
    rule(count = 4, per = "4s", algorithm = "sliding_log"),
    rule(count = 5, per = "5s", algorithm = Algorithm::FixedWindow),
    rule(count = 6, per = "6s", algorithm = "semaphore"),
    on_outage = OnOutage::Local,
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
