//! The body is what it was.

use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};

use tallygate::{Rejection, rate_limit};

use crate::{Failure, assert_limited};

#[rate_limit(rule(count = 1, per = "60s"))]
async fn with_items() -> Result<u8, Failure> {
    #![allow(unused_variables)]
    use std::convert::identity;
    const ONE: u8 = 1;
    fn two() -> u8 {
        2
    }
    let unused = 0;
    let value: Result<u8, Rejection> = Ok(identity(ONE) + two());
    Ok(value?)
}

#[tokio::test]
async fn a_body_keeps_its_items_and_inner_attributes() {
    assert_eq!(with_items().await.unwrap(), 3);
    assert_limited(with_items().await);
}

#[rate_limit(key = "{n}", rule(count = 1, per = "60s"))]
async fn recursive(n: u8) -> Result<u8, Rejection> {
    if n == 0 {
        return Ok(0);
    }
    Ok(Box::pin(recursive(n - 1)).await? + 1)
}

#[tokio::test]
async fn a_body_may_call_its_own_function() {
    assert_eq!(recursive(3).await.unwrap(), 3);
    assert_limited(recursive(1).await);
}

#[rate_limit(rule(count = 1, per = "60s"))]
async fn coerced() -> Result<Box<dyn Display>, Rejection> {
    Ok(Box::new("shown"))
}

#[tokio::test]
async fn a_body_coerces_to_its_return_type() {
    assert_eq!(coerced().await.unwrap().to_string(), "shown");
    assert_limited(coerced().await);
}

static RUNS: AtomicU32 = AtomicU32::new(0);

macro_rules! run {
    () => {
        RUNS.fetch_add(1, Ordering::Relaxed)
    };
}

/// Starts with a macro call, which looks like an item.
#[rate_limit(rule(count = 1, per = "60s"))]
async fn call_first() -> Result<u32, Rejection> {
    run!();
    Ok(run!())
}

#[tokio::test]
async fn nothing_of_a_denied_body_runs() {
    assert_eq!(call_first().await.unwrap(), 1);
    assert_limited(call_first().await);
    assert_eq!(RUNS.load(Ordering::Relaxed), 2);
}
