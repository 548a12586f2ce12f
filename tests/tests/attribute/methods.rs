//! Methods are limited like functions.

use std::fmt::Display;
use std::sync::Arc;

use tallygate::{Limiter, Rejection, rate_limit};

use crate::{Failure, assert_limited};

struct Service {
    tenant: &'static str,
    limiter: Limiter,
    calls: u32,
}

impl Service {
    fn new(tenant: &'static str) -> Self {
        Self { tenant, limiter: Limiter::in_memory(), calls: 0 }
    }

    #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"), limiter = self.limiter)]
    async fn by_reference(&self) -> Result<&str, Rejection> {
        Ok(self.tenant)
    }

    #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"))]
    async fn by_mutable_reference(&mut self) -> Result<u32, Rejection> {
        self.calls += 1;
        Ok(self.calls)
    }

    #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"))]
    async fn by_value(mut self) -> Result<Self, Rejection> {
        self.calls += 1;
        Ok(self)
    }

    #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"))]
    async fn shared(self: Arc<Self>, extra: u32) -> Result<u32, Failure> {
        Ok(self.calls + extra)
    }

    #[rate_limit(key = "{tenant}", rule(count = 1, per = "60s"))]
    async fn associated(tenant: &'static str) -> Result<Self, Rejection> {
        Ok(Self::new(tenant))
    }
}

#[tokio::test]
async fn methods_are_limited_however_they_take_self() {
    let mut service = Service::new("acme");
    assert_eq!(service.by_reference().await.unwrap(), "acme");
    assert_limited(service.by_reference().await);
    assert_eq!(service.by_mutable_reference().await.unwrap(), 1);
    assert_limited(service.by_mutable_reference().await);
    assert_eq!(service.by_value().await.unwrap().calls, 2);
    assert_limited(Service::new("acme").by_value().await);
    assert_eq!(Service::new("umbrella").by_value().await.unwrap().calls, 1);
    assert_eq!(Arc::new(Service::new("acme")).shared(1).await.unwrap(), 1);
    assert_limited(Arc::new(Service::new("acme")).shared(1).await);
    assert_eq!(Service::associated("acme").await.unwrap().tenant, "acme");
    assert_limited(Service::associated("acme").await);
}

#[tokio::test]
async fn a_limiter_of_ones_own_has_tallies_of_its_own() {
    let (one, another) = (Service::new("own"), Service::new("own"));
    one.by_reference().await.unwrap();
    another.by_reference().await.unwrap();
    assert_limited(one.by_reference().await);
}

trait Greet {
    async fn greet(&self, name: &str) -> Result<String, Rejection>;
}

impl Greet for Service {
    #[rate_limit(key = "{self.tenant}:{name}", rule(count = 1, per = "60s"))]
    async fn greet(&self, name: &str) -> Result<String, Rejection> {
        Ok(format!("hello {name}"))
    }
}

trait Provided: Display + Sync {
    #[rate_limit(key = "{self}", rule(count = 1, per = "60s"))]
    async fn provided(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

impl Provided for u8 {}

#[tokio::test]
async fn trait_methods_are_limited_as_implemented_and_as_provided() {
    let service = Service::new("acme");
    assert_eq!(service.greet("ann").await.unwrap(), "hello ann");
    assert_limited(service.greet("ann").await);
    1.provided().await.unwrap();
    2.provided().await.unwrap();
    assert_limited(1.provided().await);
}
