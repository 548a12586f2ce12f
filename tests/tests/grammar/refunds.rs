//! A call may be counted no more when its result is known.

#![allow(clippy::needless_pass_by_value, reason = "shapes that no style guide would have are shapes, too")]

use std::cell::Cell;
use std::fmt::Display;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};
use tallygate_tests::server::{Server, connected};

use crate::{Runs, denial};

#[derive(Debug)]
enum Failure {
    Wrong,
    Rejected(Rejection),
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(_: std::num::ParseIntError) -> Self {
        Self::Wrong
    }
}

fn is_rejected<T>(result: &Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Rejected(rejection)) if rejection.kind() == RejectionKind::Limited)
}

/// Fails by `?` unless it is a number, and leaves by `return` if it is 0.
#[rate_limit(key = "{user}", rule(count = 2, per = "1h"), refund_if = Result::is_ok, limiter = limiter)]
async fn login(user: &str, mut password: String, limiter: &Limiter, runs: &Runs) -> Result<u32, Failure> {
    #![allow(unused_variables)]
    const NOTHING: u32 = 0;
    runs.count();
    password.push('0');
    if password == "00" {
        return Ok(NOTHING);
    }
    let number: u32 = password.parse()?;
    Ok(number)
}

async fn only_failures_count(limiter: &Limiter) {
    let runs = Runs::default();
    for _ in 0..5 {
        assert_eq!(login("alice", "1".into(), limiter, &runs).await.unwrap(), 10);
        assert_eq!(login("alice", "0".into(), limiter, &runs).await.unwrap(), 0);
    }
    for _ in 0..2 {
        assert!(matches!(login("alice", "x".into(), limiter, &runs).await, Err(Failure::Wrong)));
        login("bob", "1".into(), limiter, &runs).await.unwrap();
    }
    assert!(is_rejected(&login("alice", "1".into(), limiter, &runs).await));
    assert_eq!(runs.0.get(), 14);
}

#[tokio::test(start_paused = true)]
async fn only_failures_count_if_successes_are_refunded() {
    only_failures_count(&Limiter::in_memory()).await;
}

#[tokio::test]
async fn only_failures_count_on_redis() {
    only_failures_count(&Server::start().limiter().await).await;
}

#[rate_limit(rule(count = 1, per = "1h"), refund_if = |result| matches!(result, Ok(length) if length.is_empty()), limiter = limiter)]
async fn search(text: &str, limiter: &Limiter) -> Result<Vec<u8>, Rejection> {
    tokio::task::yield_now().await;
    let _ = limiter;
    Ok(text.bytes().collect())
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_inspect_the_result() {
    let limiter = Limiter::in_memory();
    for _ in 0..3 {
        assert!(search("", &limiter).await.unwrap().is_empty());
    }
    assert_eq!(search("a", &limiter).await.unwrap(), [b'a']);
    denial(search("", &limiter).await);
}

#[rate_limit(prevent_duplicate, rule(count = 2, per = "1h"), refund_if = Result::is_err, limiter = limiter)]
async fn order(fail: bool, limiter: &Limiter) -> Result<(), Failure> {
    let _ = limiter;
    if fail { Err(Failure::Wrong) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_back_may_be_repeated_at_once() {
    let limiter = Limiter::in_memory();
    for _ in 0..5 {
        assert!(matches!(order(true, &limiter).await, Err(Failure::Wrong)));
    }
    order(false, &limiter).await.unwrap();
    let again = order(true, &limiter).await;
    assert!(matches!(again, Err(Failure::Rejected(rejection)) if rejection.kind() == RejectionKind::Duplicate));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_in_its_body_stays_counted() {
    let limiter = Limiter::in_memory();
    assert!(futures_util::FutureExt::now_or_never(search("", &limiter)).is_none());
    denial(search("", &limiter).await);
}

/// As a runtime does that runs a future to its end; in memory, that is at once.
fn block_on<F: Future>(future: F) -> F {
    future
}

struct Service {
    name: String,
    limiter: Limiter,
    calls: u32,
}

impl Service {
    #[rate_limit(key = "{self.name}", rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    async fn coerced(&mut self, fail: bool) -> Result<Box<dyn Display + '_>, Box<dyn std::error::Error + Send + Sync>> {
        self.calls += 1;
        if fail {
            return Err("failed".into());
        }
        Ok(Box::new(&self.name))
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    async fn borrowed<'a>(&'a self, other: &'a str, fail: bool) -> Result<&'a str, Rejection> {
        if fail { Err(self.borrowed_by_force(other).await.unwrap_err()) } else { Ok(&self.name) }
    }

    /// Rejects each call but the first.
    #[rate_limit(rule(count = 1, per = "1h"))]
    async fn borrowed_by_force<'a>(&self, other: &'a str) -> Result<&'a str, Rejection> {
        Ok(other)
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    fn opaque(&self, fail: bool) -> impl Future<Output = Result<u32, Failure>> + Send + use<> {
        let calls = self.calls;
        async move {
            let number: u32 = if fail { "x" } else { "1" }.parse()?;
            Ok(number + calls)
        }
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    fn borrowing<'a>(&'a self, fail: &'a bool) -> impl Future<Output = Result<&'a str, Failure>> + Send {
        async { if *fail { Err(Failure::Wrong) } else { Ok(self.name.as_str()) } }
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    fn run_to_its_end(&self, fail: bool) -> Result<&str, Failure> {
        let body = async { if fail { Err(Failure::Wrong) } else { Ok(self.name.as_str()) } };
        futures_util::FutureExt::now_or_never(block_on(body)).unwrap()
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    fn boxed(&self, fail: bool) -> Pin<Box<dyn Future<Output = Result<&str, Failure>> + Send + '_>> {
        Box::pin(async move {
            if fail {
                return Err(Failure::Wrong);
            }
            Ok(self.name.as_str())
        })
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = |unit| { let () = unit; true }, reject = drop, limiter = self.limiter)]
    async fn unit(&self, runs: &Runs) {
        runs.count();
    }

    #[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    async fn consuming(self, fail: bool) -> Result<impl Display, Failure> {
        if fail {
            return Err(Failure::Wrong);
        }
        Ok(self.name)
    }
}

#[async_trait]
trait Later {
    async fn later(&mut self, fail: bool) -> Result<u32, Failure>;
}

#[async_trait]
impl Later for Service {
    #[rate_limit(key = "{self.name}", rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = self.limiter)]
    async fn later(&mut self, fail: bool) -> Result<u32, Failure> {
        self.calls += 1;
        if fail {
            return Err(Failure::Wrong);
        }
        let calls: u32 = self.calls.to_string().parse()?;
        Ok(calls)
    }
}

#[tokio::test(start_paused = true)]
async fn every_shape_gives_its_permit_back() {
    let mut service = Service { name: "a".into(), limiter: Limiter::in_memory(), calls: 0 };
    for _ in 0..2 {
        assert_eq!(service.coerced(false).await.unwrap().to_string(), "a");
        assert_eq!(service.borrowed("b", false).await.unwrap(), "a");
        assert!(service.opaque(false).await.is_ok());
        assert_eq!(service.boxed(false).await.unwrap(), "a");
        assert_eq!(service.borrowing(&false).await.unwrap(), "a");
        assert_eq!(service.run_to_its_end(false).unwrap(), "a");
        assert!(service.later(false).await.is_ok());
        let again = Service { name: "a".into(), limiter: service.limiter.clone(), calls: 0 };
        assert_eq!(again.consuming(false).await.unwrap().to_string(), "a");
    }
    let calls = service.calls;
    assert_eq!(service.coerced(true).await.err().unwrap().to_string(), "failed");
    assert!(service.coerced(false).await.err().unwrap().to_string().starts_with("too many requests"));
    assert!(matches!(service.opaque(true).await, Err(Failure::Wrong)));
    assert!(is_rejected(&service.opaque(false).await));
    assert!(matches!(service.boxed(true).await, Err(Failure::Wrong)));
    assert!(is_rejected(&service.boxed(false).await));
    assert!(service.borrowing(&true).await.is_err() && is_rejected(&service.borrowing(&false).await));
    assert!(service.run_to_its_end(true).is_err() && is_rejected(&service.run_to_its_end(false)));
    assert!(matches!(service.later(true).await, Err(Failure::Wrong)));
    assert!(is_rejected(&service.later(false).await));
    assert_eq!(service.calls, calls + 2);
    let runs = Runs::default();
    for _ in 0..3 {
        service.unit(&runs).await;
    }
    assert_eq!(runs.0.get(), 3);
    assert_eq!(service.borrowed_by_force("b").await.unwrap(), "b");
    service.borrowed("b", true).await.unwrap_err();
    assert_eq!(service.borrowed("b", false).await.unwrap_err().kind(), RejectionKind::Limited);
    let again = Service { name: "a".into(), limiter: service.limiter.clone(), calls: 0 };
    assert!(matches!(service.consuming(true).await, Err(Failure::Wrong)));
    assert!(again.consuming(false).await.is_err());
}

#[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok)]
async fn sent(text: &str) -> Result<usize, Rejection> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

/// Borrows from what can be sent, but not be shared, before each await.
#[rate_limit(
    key = "{cell.get()}",
    rule(count = u64::from(cell.get()), per = "1h"),
    rule(count = 3, per = "1h", key = "cell:{cell.get()}", message = "not {cell.get():hash}"),
    ban(denials = 3, within = "1h", duration = "1h", message = "{cell.get()} is out"),
    cost = u64::from(cell.get()),
    wait = "1s",
    refund_if = Result::is_ok,
    skip_if = cell.get() == 0
)]
async fn not_shared(cell: Cell<u8>) -> Result<Cell<u8>, Rejection> {
    tokio::task::yield_now().await;
    cell.set(cell.get() + 1);
    Ok(cell)
}

#[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok)]
async fn not_sent(text: Rc<str>) -> Result<usize, Rejection> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

#[tokio::test]
async fn a_future_that_gives_back_is_send_if_it_was() {
    let call = async { sent("abc").await };
    assert_eq!(tokio::spawn(call).await.unwrap().unwrap(), 3);
    for cell in [3, 3, 0, 0] {
        assert_eq!(tokio::spawn(not_shared(Cell::new(cell))).await.unwrap().unwrap().get(), cell + 1);
    }
    assert_eq!(not_sent("abc".into()).await.unwrap(), 3);
}

#[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = limiter)]
async fn closes(server: &mut Server, limiter: &Limiter) -> Result<u8, Rejection> {
    server.kill();
    Ok(1)
}

#[tokio::test]
async fn an_outage_leaves_the_call_counted_and_its_result_as_it_is() {
    let mut server = Server::start();
    let limiter = connected(&Limiter::builder().deadline(Duration::from_millis(500)), &server.url()).await;
    assert_eq!(closes(&mut server, &limiter).await.unwrap(), 1);
    assert_eq!(closes(&mut server, &limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
}
