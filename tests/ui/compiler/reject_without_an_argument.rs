use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"), reject = || 0)]
async fn count(phone: &str) -> u32 {
    phone.len() as u32
}

fn main() {}
