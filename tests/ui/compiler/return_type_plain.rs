use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"))]
async fn count() -> Option<Vec<u32>> {
    Some(vec![1])
}

fn main() {}
