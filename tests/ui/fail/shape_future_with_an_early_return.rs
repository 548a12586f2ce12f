use std::future::{Future, ready};
use std::pin::Pin;

use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
fn count(text: &str) -> Pin<Box<dyn Future<Output = Result<usize, Rejection>> + '_>> {
    if text.is_empty() {
        return Box::pin(ready(Ok(0)));
    }
    Box::pin(async move { Ok(text.len()) })
}

fn main() {}
