use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"))]
async fn tick() {}

fn main() {}
