//! Other attributes may stand above and under this one, also those that rewrite the function.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Json;
use axum::extract::Path;
use tallygate::{Limiter, Rejection, rate_limit};
use tracing::instrument;

use crate::shapes::{Runs, shapes};
use crate::{Failure, assert_limited};

struct Order {
    id: u8,
    lines: Vec<u8>,
}

#[async_trait]
trait Shop {
    async fn by_reference(&self, phone: &str) -> Result<usize, Rejection>;
    async fn by_mutable_reference(&mut self) -> Result<u8, Rejection>;
    async fn by_value(self) -> Result<Self, Rejection>
    where
        Self: Sized;
    async fn shared(self: Arc<Self>) -> Result<(), Failure>;
    async fn patterns(&self, order: Json<Order>, pair: (u8, u8)) -> Result<Vec<u8>, Rejection>;
    async fn generic<T: Display + Send + Sync, const N: usize>(&self, value: T) -> Result<T, Rejection>;
    async fn associated(runs: &Runs) -> Result<Box<dyn Display + Send>, Rejection>
    where
        Self: Sized;
    async fn own_limiter(&mut self) -> Result<(), Rejection>;
    async fn traced_outside(&self, phone: &str) -> Result<(), Rejection>;
    async fn traced_inside(&self, phone: &str) -> Result<(), Rejection>;

    #[rate_limit(key = "{self.name()}:{count}", rule(count = 1, per = "1h"))]
    async fn provided(&self, runs: &Runs, mut count: u8) -> Result<u8, Rejection> {
        runs.add();
        count += 1;
        Ok(count)
    }

    fn name(&self) -> String {
        "shop".into()
    }
}

struct Service {
    id: u8,
    runs: Runs,
    limiter: Limiter,
}

impl Service {
    fn of(id: u8, runs: &Runs) -> Self {
        Self { id, runs: runs.clone(), limiter: Limiter::installed().clone() }
    }
}

#[async_trait]
impl Shop for Service {
    #[rate_limit(key = "{self.id}:{phone}", rule(count = 1, per = "1h"))]
    async fn by_reference(&self, phone: &str) -> Result<usize, Rejection> {
        #![allow(clippy::let_and_return)]
        use std::convert::identity;
        self.runs.add();
        let length = identity(phone.len());
        Ok(length)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn by_mutable_reference(&mut self) -> Result<u8, Rejection> {
        self.runs.add();
        self.id += 1;
        Ok(self.id)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn by_value(mut self) -> Result<Self, Rejection> {
        self.runs.add();
        self.id += 1;
        Ok(self)
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    async fn shared(self: Arc<Self>) -> Result<(), Failure> {
        self.runs.add();
        let passed: Result<(), Rejection> = Ok(());
        Ok(passed?)
    }

    #[rate_limit(key = "{order.id}:{a}", rule(count = 1, per = "1h"))]
    async fn patterns(&self, Json(mut order): Json<Order>, (a, _): (u8, u8)) -> Result<Vec<u8>, Rejection> {
        self.runs.add();
        order.lines.push(a);
        Ok(order.lines)
    }

    #[rate_limit(key = "{value}", rule(count = 1, per = "1h"))]
    async fn generic<T: Display + Send + Sync, const N: usize>(&self, value: T) -> Result<T, Rejection> {
        self.runs.add();
        Ok(value)
    }

    #[rate_limit(rule(count = 1, per = "1h"))]
    async fn associated(runs: &Runs) -> Result<Box<dyn Display + Send>, Rejection> {
        runs.add();
        Ok(Box::new(1))
    }

    #[rate_limit(key = "{self}", rule(count = 1, per = "1h"), limiter = self.limiter)]
    async fn own_limiter(&mut self) -> Result<(), Rejection> {
        self.runs.add();
        Ok(())
    }

    #[instrument(skip_all)]
    #[rate_limit(key = "{self.id}:{phone}", rule(count = 1, per = "1h"))]
    async fn traced_outside(&self, phone: &str) -> Result<(), Rejection> {
        self.runs.add();
        Ok(())
    }

    #[rate_limit(key = "{self.id}:{phone}", rule(count = 1, per = "1h"))]
    #[instrument(skip_all, fields(phone))]
    async fn traced_inside(&self, phone: &str) -> Result<(), Rejection> {
        self.runs.add();
        Ok(())
    }
}

impl Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service {}", self.id)
    }
}

#[async_trait(?Send)]
trait Local {
    async fn local(&self, text: std::rc::Rc<str>) -> Result<std::rc::Rc<str>, Rejection>;
}

#[async_trait(?Send)]
impl Local for Runs {
    #[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
    async fn local(&self, text: std::rc::Rc<str>) -> Result<std::rc::Rc<str>, Rejection> {
        self.add();
        Ok(text)
    }
}

shapes! {
    under_async_trait_by_reference => async |runs: &Runs| Service::of(1, runs).by_reference("138").await;
    under_async_trait_by_mutable_reference => async |runs: &Runs| Service::of(1, runs).by_mutable_reference().await;
    under_async_trait_by_value => async |runs: &Runs| Service::of(1, runs).by_value().await;
    under_async_trait_by_a_shared_pointer => async |runs: &Runs| Arc::new(Service::of(1, runs)).shared().await;
    under_async_trait_with_patterns => async |runs: &Runs| {
        Service::of(1, runs).patterns(Json(Order { id: 1, lines: vec![] }), (2, 3)).await
    };
    under_async_trait_with_generics => async |runs: &Runs| Service::of(1, runs).generic::<_, 1>("a").await;
    under_async_trait_without_self => async |runs: &Runs| Service::associated(runs).await;
    under_async_trait_with_a_limiter_of_its_own => async |runs: &Runs| Service::of(1, runs).own_limiter().await;
    under_async_trait_as_provided => async |runs: &Runs| Service::of(1, runs).provided(runs, 1).await;
    under_async_trait_without_send => async |runs: &Runs| runs.local("a".into()).await;
    under_async_trait_and_instrument => async |runs: &Runs| Service::of(1, runs).traced_outside("138").await;
    under_async_trait_and_above_instrument => async |runs: &Runs| Service::of(1, runs).traced_inside("138").await;
}

#[instrument(skip_all)]
#[rate_limit(key = "{phone}", rule(count = 1, per = "1h"))]
async fn traced_outside(runs: &Runs, phone: &str) -> Result<(), Rejection> {
    runs.add();
    Ok(())
}

#[rate_limit(key = "{phone}", rule(count = 1, per = "1h"))]
#[instrument(skip_all, err(Debug))]
async fn traced_inside(runs: &Runs, phone: &str) -> Result<(), Failure> {
    runs.add();
    Ok(())
}

#[instrument(skip_all)]
#[rate_limit(key = "{phone}", rule(count = 1, per = "1h"))]
fn traced_future(runs: &Runs, phone: &str) -> impl Future<Output = Result<(), Rejection>> {
    async move {
        runs.add();
        let _ = phone;
        Ok(())
    }
}

#[axum::debug_handler]
#[rate_limit(key = "{phone}:{order}", rule(count = 1, per = "1h"))]
async fn handled_outside(Path(phone): Path<String>, Json(order): Json<u8>) -> Result<String, Answer> {
    RUNS_OUTSIDE.add_one();
    Ok(format!("{phone}{order}"))
}

#[rate_limit(key = "{phone}:{order}", rule(count = 1, per = "1h"))]
#[axum::debug_handler]
async fn handled_inside(Path(phone): Path<String>, Json(order): Json<u8>) -> Result<String, Answer> {
    RUNS_INSIDE.add_one();
    Ok(format!("{phone}{order}"))
}

static RUNS_OUTSIDE: Counter = Counter(std::sync::atomic::AtomicU32::new(0));
static RUNS_INSIDE: Counter = Counter(std::sync::atomic::AtomicU32::new(0));

/// Handlers take no arguments of ours.
struct Counter(std::sync::atomic::AtomicU32);

impl Counter {
    fn add_one(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// Passes on the runs since the last time.
    fn take(&self, runs: &Runs) {
        (0..self.0.swap(0, std::sync::atomic::Ordering::Relaxed)).for_each(|_| runs.add());
    }
}

#[derive(Debug)]
struct Answer(Rejection);

impl From<Rejection> for Answer {
    fn from(rejection: Rejection) -> Self {
        Self(rejection)
    }
}

impl From<Answer> for Failure {
    fn from(answer: Answer) -> Self {
        Self(answer.0)
    }
}

impl axum::response::IntoResponse for Answer {
    fn into_response(self) -> axum::response::Response {
        (axum::http::StatusCode::TOO_MANY_REQUESTS, self.0.to_string()).into_response()
    }
}

shapes! {
    under_instrument => async |runs: &Runs| traced_outside(runs, "138").await;
    above_instrument => async |runs: &Runs| traced_inside(runs, "138").await;
    a_future_under_instrument => async |runs: &Runs| traced_future(runs, "138").await;
    under_debug_handler => async |runs: &Runs| {
        let handled = handled_outside(Path("138".into()), Json(1)).await;
        RUNS_OUTSIDE.take(runs);
        handled
    };
    above_debug_handler => async |runs: &Runs| {
        let handled = handled_inside(Path("138".into()), Json(1)).await;
        RUNS_INSIDE.take(runs);
        handled
    };
}

/// A test has no arguments and is called once: whether it was limited shows in the tally that it shares.
async fn assert_counted(who: &str) -> Result<(), Rejection> {
    #[rate_limit(name = "attribute.test", key = "{who}", rule(count = 1, per = "1h"))]
    async fn again(who: &str) -> Result<(), Rejection> {
        let _ = who;
        Ok(())
    }
    assert_limited(again(who).await);
    Ok(())
}

#[tokio::test]
#[rate_limit(name = "attribute.test", key = "under", rule(count = 1, per = "1h"))]
async fn under_tokio_test() -> Result<(), Rejection> {
    assert_counted("under").await
}

#[rate_limit(name = "attribute.test", key = "above", rule(count = 1, per = "1h"))]
#[tokio::test]
async fn above_tokio_test() -> Result<(), Rejection> {
    assert_counted("above").await
}

mod denied {
    use super::{Rejection, rate_limit};

    #[tokio::main(flavor = "current_thread")]
    #[rate_limit(rule(count = 1, per = "1h"))]
    pub(super) async fn main() -> Result<(), Rejection> {
        Ok(())
    }
}

#[test]
fn under_tokio_main() {
    denied::main().unwrap();
    assert_limited(denied::main());
}
