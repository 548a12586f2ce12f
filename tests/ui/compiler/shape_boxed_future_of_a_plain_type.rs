use std::future::Future;
use std::pin::Pin;

use tallygate::rate_limit;

#[rate_limit(rule(count = 10, per = "60s"))]
fn count() -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
    Box::pin(async move { Some(1) })
}

fn main() {}
