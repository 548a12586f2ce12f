use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key: "{phone}",
    name => "sms",
    message "slow down",
    rule { count = 1, per = "60s" },
    rule = (count = 2, per = "120s"),
    rule(count: 3, per => "60s"),
    rule(count = 10; per = "24h"),
    prevent_duplicate: "5s",
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
