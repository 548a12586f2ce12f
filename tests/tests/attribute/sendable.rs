//! A limited future can be sent to another thread exactly when it could before.

use std::future::Future;
use std::marker::PhantomData;
use std::rc::Rc;

use tallygate::{Rejection, rate_limit};

use crate::assert_limited;

fn assert_send<T: Send>(future: T) -> T {
    future
}

/// Compiles for what is not `Send`: of what is, it is ambiguous which of the two it does.
fn assert_not_send<T: NotSend<Which>, Which>(future: T) -> T {
    future
}

trait NotSend<Which> {}

impl<T> NotSend<()> for T {}
impl<T: Send> NotSend<PhantomData<T>> for T {}

#[rate_limit(rule(count = 1, per = "1h"))]
fn holding(text: Rc<str>) -> impl Future<Output = Result<usize, Rejection>> {
    async move {
        tokio::task::yield_now().await;
        Ok(text.len())
    }
}

#[allow(clippy::needless_pass_by_value)]
#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
fn letting_go(text: Rc<str>) -> impl Future<Output = Result<usize, Rejection>> {
    let length = text.len();
    async move {
        tokio::task::yield_now().await;
        Ok(length)
    }
}

#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
async fn awaiting(text: Rc<str>) -> Result<usize, Rejection> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
async fn awaiting_what_can_be_sent(text: &str) -> Result<usize, Rejection> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

#[tokio::test]
async fn a_future_is_send_exactly_when_it_was_before() {
    assert_not_send(holding("a".into())).await.unwrap();
    assert_not_send(awaiting("a".into())).await.unwrap();
    assert_send(letting_go("a".into())).await.unwrap();
    assert_send(awaiting_what_can_be_sent("a")).await.unwrap();
    assert_limited(assert_not_send(holding("a".into())).await);
    assert_limited(assert_send(letting_go("a".into())).await);
}
