use std::future::Future;
use std::pin::Pin;

use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
fn count(text: &str) -> Pin<Box<dyn Future<Output = Result<u32, Rejection>> + '_>> {
    Box::pin(async move {
        let count: u32 = text;
        Ok(count)
    })
}

fn main() {}
