use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"))]
struct Sender;

fn main() {}
