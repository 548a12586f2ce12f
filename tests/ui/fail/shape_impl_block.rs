use tallygate::{Rejection, rate_limit};

struct Service;

#[rate_limit(rule(count = 10, per = "60s"))]
impl Service {
    async fn count(&self) -> Result<u32, Rejection> {
        Ok(1)
    }
}

fn main() {}
