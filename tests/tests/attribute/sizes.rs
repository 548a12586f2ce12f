//! The future of a limited function holds little more than that of the function itself.

use std::future::Future;
use std::pin::Pin;

use tallygate::{Limiter, Rejection, rate_limit};

/// The most bytes of the future, where that of the function itself has less than 100. A permit has room for where its lease is, so that
/// a concurrent call allocates nothing.
const MOST: usize = 300;

/// The most bytes where the result of the body decides about a refund: the body is then a future of its own.
const MOST_WITH_REFUND: usize = 300;

async fn work(text: &str) -> usize {
    tokio::task::yield_now().await;
    text.len()
}

async fn unlimited(text: &str) -> Result<usize, Rejection> {
    Ok(work(text).await)
}

#[rate_limit(key = "sms:{text}", rule(count = 1, per = "60s"), rule(count = 10, per = "1d"))]
async fn limited(text: &str) -> Result<usize, Rejection> {
    Ok(work(text).await)
}

#[rate_limit(
    key = "{text}",
    rule(count = calls, per = "60s"),
    rule(count = 20, per = "1d", key = "{text:lower}", message = "{text} was here {@count} times"),
    limiter = limiter,
    cost = text.len() as u64,
    wait = "1ms",
    skip_if = text.is_empty()
)]
async fn with_options(text: &str, calls: u64, limiter: &Limiter) -> Result<usize, Rejection> {
    let _ = limiter;
    Ok(work(text).await)
}

#[rate_limit(key = "{text}", rule(count = 1, per = "60s"))]
fn returned(text: &str) -> impl Future<Output = Result<usize, Rejection>> {
    async move { Ok(work(text).await) }
}

#[rate_limit(key = "{text}", rule(count = 1, per = "60s"))]
fn boxed(text: &str) -> Pin<Box<dyn Future<Output = Result<usize, Rejection>> + '_>> {
    Box::pin(async move { Ok(work(text).await) })
}

#[rate_limit(key = "{text}", rule(count = 1, per = "60s"), refund_if = Result::is_err)]
async fn refunding(text: &str) -> Result<usize, Rejection> {
    Ok(work(text).await)
}

#[rate_limit(
    key = "{@ip}/{text}",
    rule(count = 1, per = "60s", message = "not so fast, {@user:lower}"),
    rule(count = 10, per = "1d", key = "{@user:hash}")
)]
async fn in_context(text: &str) -> Result<usize, Rejection> {
    Ok(work(text).await)
}

/// Holds the rendered value of its argument until it is polled in a context.
#[rate_limit(key = "{@ip}/{text}", rule(count = 1, per = "60s"))]
fn returned_in_context(text: &str) -> impl Future<Output = Result<usize, Rejection>> {
    async move { Ok(work(text).await) }
}

#[test]
fn the_future_of_a_limited_function_is_small() {
    let limiter = Limiter::in_memory();
    let unlimited = size_of_val(&unlimited("a"));
    assert!(unlimited < 100, "{unlimited} bytes");
    for (shape, size) in [
        ("limited", size_of_val(&limited("a"))),
        ("with options", size_of_val(&with_options("a", 1, &limiter))),
        ("returned", size_of_val(&returned("a"))),
        ("boxed", size_of_val(&*boxed("a"))),
        ("in a context", size_of_val(&in_context("a"))),
        ("returned, in a context", size_of_val(&returned_in_context("a"))),
    ] {
        assert!(size <= MOST, "{shape}: {size} bytes beside {unlimited}");
    }
    let refunding = size_of_val(&refunding("a"));
    assert!(refunding <= MOST_WITH_REFUND, "{refunding} bytes beside {unlimited}");
}
