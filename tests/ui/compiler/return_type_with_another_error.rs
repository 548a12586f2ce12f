use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"))]
async fn count() -> Result<u32, std::num::ParseIntError> {
    "1".parse()
}

fn main() {}
