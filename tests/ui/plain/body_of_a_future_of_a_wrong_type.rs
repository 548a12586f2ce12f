use std::future::Future;

use tallygate::Rejection;

// As it is without the attribute.
fn count() -> impl Future<Output = Result<u32, Rejection>> {
    async move { Ok("one") }
}

fn main() {}
