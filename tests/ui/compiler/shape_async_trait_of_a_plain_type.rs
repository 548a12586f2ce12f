use async_trait::async_trait;
use tallygate::rate_limit;

#[async_trait]
trait Count {
    #[rate_limit(rule(count = 10, per = "60s"))]
    async fn count(&self) -> Option<u32> {
        Some(1)
    }
}

fn main() {}
