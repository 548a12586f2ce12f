use async_trait::async_trait;
use tallygate::{Rejection, rate_limit};

#[async_trait]
trait Count {
    #[rate_limit(key = "{texd}", rule(count = 10, per = "60s"))]
    async fn count(&self, (text, number): (String, u32)) -> Result<u32, Rejection> {
        Ok(number + text.len() as u32)
    }
}

fn main() {}
