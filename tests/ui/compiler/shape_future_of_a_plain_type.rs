use std::future::Future;

use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"))]
fn count() -> impl Future<Output = Option<u32>> + Send {
    async move { Some(1) }
}

fn main() {}
