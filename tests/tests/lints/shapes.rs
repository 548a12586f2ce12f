//! Expansions of every shape are silent under the strictest lints that a user may deny.

use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use tallygate::{HoldPermit, Permit, Rejection, RejectionKind, rate_limit};

/// A future that is boxed.
pub type Boxed<'a> = Pin<Box<dyn Future<Output = Result<u8, Rejection>> + Send + 'a>>;

/// On one line.
///
/// # Errors
///
/// There are too many.
#[rustfmt::skip]
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"))]
pub async fn on_one_line(number: u8) -> Result<u8, Rejection> { Ok(number) }

/// Is not async.
///
/// # Errors
///
/// There are too many.
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"), message = "not {number}", skip_if = number > 9)]
pub fn blocking(number: u8) -> Result<u8, Rejection> {
    Ok(number)
}

/// Is not async, and counted no more if it fails.
///
/// # Errors
///
/// There are too many.
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"), wait = "1s", refund_if = Result::is_err)]
pub fn blocking_refunded(number: &u8) -> Result<&u8, Rejection> {
    let number = Ok::<_, Rejection>(number)?;
    Ok(number)
}

/// Returns a future.
///
/// # Errors
///
/// There are too many.
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"), message = "not {number}")]
pub fn opaque(number: &u8) -> impl Future<Output = Result<u8, Rejection>> + Send + use<> {
    const ONE: u8 = 1;
    let number = *number + ONE;
    async move { Ok(number) }
}

/// Returns a future that is boxed.
#[must_use]
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"), check_fn = boxed_limit)]
pub fn boxed(number: &u8) -> Boxed<'_> {
    Box::pin(async move { Ok(*number) })
}

/// Returns a future that is counted no more if it fails.
///
/// # Errors
///
/// There are too many.
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"), refund_if = Result::is_err, skip_if = *number == 0)]
pub fn refunded(number: &u8) -> impl Future<Output = Result<u8, Rejection>> + Send + use<> {
    let number = *number;
    async move { Ok(number) }
}

/// Returns a boxed future that is counted no more if it fails.
#[must_use]
#[rate_limit(rule(count = 1, per = "60s", key = "{number}"), refund_if = Result::is_err)]
pub fn boxed_and_refunded(number: &u8) -> Boxed<'_> {
    Box::pin(async move { Ok(*number) })
}

/// Counts.
#[async_trait]
pub trait Count {
    /// Counts one.
    ///
    /// # Errors
    ///
    /// There are too many.
    #[rate_limit(key = "{self.name()}:{by}", rule(count = 1, per = "60s"), check_fn = provided_limit)]
    async fn provided(&self, (by, _): (u8, u8)) -> Result<u8, Rejection> {
        Ok(by)
    }

    /// Counts all.
    ///
    /// # Errors
    ///
    /// There are too many.
    async fn count(&mut self, by: u8) -> Result<u8, Rejection>;

    /// Its name.
    fn name(&self) -> String;
}

#[async_trait]
impl Count for u8 {
    #[rate_limit(key = "{self}:{by}", rule(count = 1, per = "60s"), refund_if = Result::is_err)]
    async fn count(&mut self, by: Self) -> Result<Self, Rejection> {
        *self += by;
        Ok(*self)
    }

    fn name(&self) -> String {
        self.to_string()
    }
}

/// Has lifetimes of its own.
///
/// # Errors
///
/// There are too many.
#[rate_limit(key = "{number}", rule(count = 1, per = "60s"), check_fn = named_limit)]
pub async fn named<'a>(number: &'a u8, _other: &str) -> Result<&'a u8, Rejection> {
    Ok(number)
}

/// A response whose body goes on.
#[derive(Debug)]
pub struct Streamed {
    permit: Option<Permit>,
}

impl HoldPermit for Streamed {
    fn hold_permit(self, permit: Permit) -> Self {
        Self { permit: Some(permit) }
    }
}

/// Runs until the body of its response is over.
///
/// # Errors
///
/// There are too many.
#[rate_limit(
    key = "{number}",
    rule(count = 1, per = "60s"),
    until = "body",
    concurrency(limit = 1, lease = "60s"),
    refund_if = Result::is_ok
)]
pub async fn streamed(number: &u8) -> Result<Streamed, Rejection> {
    let _: &u8 = number;
    Ok(Streamed { permit: None })
}

/// A trait whose methods return futures.
pub trait Later {
    /// Counts later.
    fn later(&self) -> impl Future<Output = Result<u8, Rejection>> + Send;
}

impl Later for u8 {
    #[rate_limit(key = "{self}", rule(count = 1, per = "60s"))]
    fn later(&self) -> impl Future<Output = Result<Self, Rejection>> + Send {
        let number = *self;
        async move { Ok(number) }
    }
}

#[tokio::test]
async fn shapes_under_strict_lints_are_limited_all_the_same() {
    assert_eq!((on_one_line(1).await.ok(), on_one_line(1).await.ok()), (Some(1), None));
    assert_eq!((opaque(&1).await.ok(), opaque(&1).await.ok()), (Some(2), None));
    assert_eq!((boxed(&1).await.ok(), boxed(&1).await.ok()), (Some(1), None));
    assert_eq!((refunded(&1).await.ok(), refunded(&1).await.ok(), refunded(&0).await.ok()), (Some(1), None, Some(0)));
    assert_eq!((boxed_and_refunded(&1).await.ok(), boxed_and_refunded(&1).await.ok()), (Some(1), None));
    assert_eq!((1.provided((2, 3)).await.ok(), 1.provided((2, 3)).await.ok()), (Some(2), None));
    assert_eq!((1.count(2).await.ok(), 1.count(2).await.ok()), (Some(3), None));
    assert_eq!((1.later().await.ok(), 1.later().await.ok()), (Some(1), None));
    assert_eq!((named(&1, "").await.ok(), named(&1, "").await.ok()), (Some(&1), None));
    let running = streamed(&1).await.ok();
    assert_eq!(streamed(&1).await.err().map(|rejection| rejection.kind()), Some(RejectionKind::Concurrency));
    assert!(running.is_some_and(|response| response.permit.is_some()));
    assert!(streamed(&1).await.is_ok());
    for check in [boxed_limit(&1), 1.provided_limit((2, 3)), named_limit(&1, "")] {
        assert_eq!(check.peek().await.ok().map(|decision| decision.is_allowed()), Some(false));
    }
}
