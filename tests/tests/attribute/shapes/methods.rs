//! Every shape of method is limited, as every shape of function is.

#![allow(clippy::needless_arbitrary_self_type, reason = "shapes that no style guide would have are shapes, too")]

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tallygate::{Limiter, Rejection, rate_limit};

use crate::shapes::{Runs, assert_runs_once, shapes};

struct Service {
    id: &'static str,
    runs: Runs,
    limiter: Limiter,
}

impl Service {
    fn of(id: &'static str, runs: &Runs) -> Self {
        Self { id, runs: runs.clone(), limiter: Limiter::in_memory() }
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn by_reference(&self) -> Result<&str, Rejection> {
        self.runs.add();
        Ok(self.id)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn by_mutable_reference(&mut self) -> Result<(), Rejection> {
        self.runs.add();
        self.id = "changed";
        Ok(())
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn by_value(self) -> Result<Runs, Rejection> {
        self.runs.add();
        Ok(self.runs)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn by_mutable_value(mut self) -> Result<Self, Rejection> {
        self.runs.add();
        self.id = "changed";
        Ok(self)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn shared(self: Arc<Self>) -> Result<Arc<Self>, Rejection> {
        self.runs.add();
        Ok(self)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn pinned(self: Pin<&mut Self>) -> Result<(), Rejection> {
        self.runs.add();
        Ok(())
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn of_a_lifetime<'a>(&'a self, other: &'a str) -> Result<&'a str, Rejection> {
        self.runs.add();
        Ok(if other.is_empty() { self.id } else { other })
    }

    #[rate_limit(key = "{id}", rule(count = 1, per = "1h"))]
    async fn associated(id: &'static str, runs: &Runs) -> Result<Self, Rejection> {
        runs.add();
        Ok(Self::of(id, runs))
    }

    #[rate_limit(rule(count = 1, per = "1h"), limiter = self.limiter)]
    async fn of_its_own_limiter(&self) -> Result<(), Rejection> {
        self.runs.add();
        Ok(())
    }
}

struct Bank<T, const N: usize>([T; N]);

impl<T: Display, const N: usize> Bank<T, N> {
    #[rate_limit(key = "{name}", rule(count = 1, per = "1h"))]
    async fn pay<'a, U: Into<String>>(
        &'a self,
        runs: &Runs,
        name: &str,
        with: U,
    ) -> Result<(&'a T, String), Rejection> {
        runs.add();
        let _ = name;
        Ok((&self.0[0], with.into()))
    }
}

trait Greet {
    async fn greet(&self, name: &str) -> Result<String, Rejection>;

    fn greet_later(&self, name: &str) -> impl Future<Output = Result<String, Rejection>> + Send;

    #[rate_limit(key = "{self.name()}", rule(count = 1, per = "1h"))]
    async fn provided(&self, runs: &Runs) -> Result<(), Rejection> {
        runs.add();
        Ok(())
    }

    fn name(&self) -> &str;
}

impl Greet for Service {
    #[rate_limit(key = "{self.id}:{name}", rule(count = 1, per = "1h"))]
    async fn greet(&self, name: &str) -> Result<String, Rejection> {
        self.runs.add();
        Ok(format!("hello {name}"))
    }

    #[rate_limit(key = "{self.id}:{name}", rule(count = 1, per = "1h"))]
    async fn greet_later(&self, name: &str) -> Result<String, Rejection> {
        self.runs.add();
        Ok(format!("hello {name}"))
    }

    fn name(&self) -> &str {
        self.id
    }
}

shapes! {
    a_method_by_reference => async |runs: &Runs| Service::of("a", runs).by_reference().await.map(drop);
    a_method_by_mutable_reference => async |runs: &Runs| Service::of("a", runs).by_mutable_reference().await;
    a_method_by_value => async |runs: &Runs| Service::of("a", runs).by_value().await;
    a_method_by_mutable_value => async |runs: &Runs| Service::of("a", runs).by_mutable_value().await;
    a_method_by_a_shared_pointer => async |runs: &Runs| Arc::new(Service::of("a", runs)).shared().await;
    a_method_by_a_pin => async |runs: &Runs| Pin::new(&mut Service::of("a", runs)).pinned().await;
    a_method_of_a_lifetime => async |runs: &Runs| Service::of("a", runs).of_a_lifetime("").await.map(drop);
    an_associated_function => async |runs: &Runs| Service::associated("a", runs).await;
    a_method_of_a_generic_type => async |runs: &Runs| Bank([1]).pay(runs, "a", "b").await.map(drop);
    a_method_of_a_trait => async |runs: &Runs| Service::of("a", runs).greet("ann").await;
    a_method_of_a_trait_that_declares_a_future => async |runs: &Runs| Service::of("a", runs).greet_later("ann").await;
    a_provided_method => async |runs: &Runs| Service::of("a", runs).provided(runs).await;
}

#[tokio::test]
async fn a_method_of_its_own_limiter() {
    let limiter = Limiter::in_memory();
    assert_runs_once(async |runs: &Runs| {
        Service { limiter: limiter.clone(), ..Service::of("a", runs) }.of_its_own_limiter().await
    })
    .await;
}
