use std::future::Future;

use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
fn count() -> impl Future<Output = Result<u32, Rejection>> {
    async move {
        let count: u32 = "one";
        Ok(count)
    }
}

fn main() {}
