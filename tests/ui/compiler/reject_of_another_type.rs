use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"), reject = |rejection| rejection.to_string())]
async fn count(phone: &str) -> u32 {
    phone.len() as u32
}

fn main() {}
