//! Functions of every shape give their calls back.

#![allow(clippy::needless_pass_by_value, reason = "shapes that no style guide would have are shapes, too")]

use std::cell::Cell;
use std::fmt::Display;
use std::pin::Pin;
use std::rc::Rc;

use async_trait::async_trait;
use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};

use crate::grammar::Runs;
use crate::grammar::refunds::{Failure, is_rejected};

/// Runs a future to its end, as a runtime does. In memory, that is at once.
fn block_on<F: Future>(future: F) -> F::Output {
    futures_util::FutureExt::now_or_never(future).unwrap()
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
        block_on(body)
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
