//! Functions that are not async but return a future are limited in it: what stands before it runs when they are called.

#![allow(
    clippy::needless_pass_by_value,
    clippy::needless_return,
    clippy::type_complexity,
    clippy::unwrap_used,
    reason = "shapes that no style guide would have are shapes, too; a test that cannot go on panics"
)]

use std::cell::Cell;
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use tallygate::{Limiter, Rejection, rate_limit};

use crate::shapes::{Runs, shapes};
use crate::{Failure, assert_limited};

type Pinned<'a, T> = Pin<Box<dyn Future<Output = Result<T, Rejection>> + Send + 'a>>;

#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
fn opaque(runs: Runs, text: String) -> impl Future<Output = Result<String, Rejection>> {
    async move {
        runs.add();
        Ok(text)
    }
}

#[rate_limit(rule(count = 1, per = "1h"))]
fn sent(runs: Runs) -> impl Future<Output = Result<u8, Failure>> + Send + 'static {
    async move {
        runs.add();
        tokio::task::yield_now().await;
        let one: Result<u8, Rejection> = Ok(1);
        Ok(one?)
    }
}

#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
fn borrowing<'a>(runs: &'a Runs, text: &'a str) -> impl Future<Output = Result<&'a str, Rejection>> + 'a {
    async move {
        runs.add();
        Ok(text)
    }
}

#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
fn not_moving<'a>(runs: &'a Runs, text: &'a str) -> impl Future<Output = Result<(), Rejection>> + use<'a> {
    let _ = text;
    async {
        runs.add();
        Ok(())
    }
}

/// Captures nothing of what the key names.
#[rate_limit(key = "{text}:{number.get()}", rule(count = 1, per = "1h"), limiter = limiter)]
fn capturing_nothing(
    runs: &Runs,
    text: &str,
    number: &Cell<u8>,
    limiter: &Limiter,
) -> impl Future<Output = Result<usize, Rejection>> + Send + use<> {
    const LONGER: usize = 1;
    let (runs, length) = (runs.clone(), text.len() + usize::from(number.get()) + LONGER);
    let _ = limiter;
    async move {
        runs.add();
        Ok(length)
    }
}

#[rate_limit(key = "{value}", rule(count = 1, per = "1h"))]
fn generic<T, const N: usize>(
    runs: Runs,
    value: T,
    bytes: [u8; N],
) -> impl Future<Output = Result<(T, usize), Rejection>> + Send + use<T, N>
where
    T: Display + Send,
{
    async move {
        runs.add();
        Ok((value, bytes.len()))
    }
}

#[rate_limit(key = "{a}", rule(count = 1, per = "1h"))]
fn destructured(runs: &Runs, (a, mut b): (u8, Vec<u8>)) -> impl Future<Output = Result<Vec<u8>, Rejection>> {
    async move {
        #![allow(unused_mut)]
        runs.add();
        b.push(a);
        Ok(b)
    }
}

#[allow(clippy::type_complexity)]
#[rate_limit(rule(count = 1, per = "1h"))]
fn boxed(runs: &Runs) -> Pin<Box<dyn Future<Output = Result<Box<dyn Display>, Rejection>> + Send + '_>> {
    Box::pin(async move {
        runs.add();
        Ok(Box::new(1) as Box<dyn Display>)
    })
}

#[allow(clippy::needless_return)]
#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
fn boxed_by_a_path(runs: &Runs, text: Rc<str>) -> Pin<Box<dyn Future<Output = Result<Rc<str>, Rejection>> + '_>> {
    #[allow(unused_imports)]
    use std::mem;
    return ::std::boxed::Box::pin(async move {
        runs.add();
        Ok(text)
    });
}

#[rate_limit(rule(count = 1, per = "1h"))]
fn boxed_under_an_alias(runs: &Runs) -> Pinned<'_, u8> {
    Box::pin(async {
        runs.add();
        Ok(1)
    })
}

#[rate_limit(rule(count = 1, per = "1h"))]
fn boxed_by_a_method(runs: &Runs) -> BoxFuture<'_, Result<u8, Rejection>> {
    async move {
        runs.add();
        Ok(1)
    }
    .boxed()
}

#[rate_limit(rule(count = 1, per = "1h"))]
fn boxed_locally(runs: &Runs) -> LocalBoxFuture<'_, Result<Rc<u8>, Rejection>> {
    async move {
        runs.add();
        Ok(Rc::new(1))
    }
    .boxed_local()
}

#[rate_limit(rule(count = 1, per = "1h"))]
fn never_ending(runs: &Runs) -> Pinned<'_, u8> {
    Box::pin(async move {
        loop {
            runs.add();
            if runs.count() > 0 {
                return Ok(1);
            }
        }
    })
}

#[allow(clippy::unwrap_used)]
#[rate_limit(rule(count = 1, per = "1h"))]
fn run_to_its_end(runs: &Runs) -> Result<(), Rejection> {
    let body = async {
        runs.add();
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(body)
}

#[test]
fn a_future_that_is_run_to_its_end() {
    let runs = Runs::default();
    run_to_its_end(&runs).unwrap();
    assert_limited(run_to_its_end(&runs));
    assert_eq!(runs.count(), 1);
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

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"), limiter = self.limiter)]
    fn opaque(&self) -> impl Future<Output = Result<u8, Rejection>> + Send + '_ {
        async move {
            self.runs.add();
            Ok(self.id)
        }
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"), limiter = self.limiter)]
    fn boxed(&mut self) -> Pinned<'_, u8> {
        Box::pin(async move {
            self.runs.add();
            self.id += 1;
            Ok(self.id)
        })
    }

    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    fn consuming(self) -> Pinned<'static, Self> {
        Box::pin(async move {
            self.runs.add();
            Ok(self)
        })
    }
}

trait Later {
    fn later(&self) -> impl Future<Output = Result<u8, Rejection>> + Send;

    #[rate_limit(key = "provided", rule(count = 1, per = "1h"))]
    fn provided(&self, runs: &Runs) -> impl Future<Output = Result<(), Rejection>>
    where
        Self: Sync,
    {
        async move {
            runs.add();
            Ok(())
        }
    }
}

impl Later for Service {
    #[rate_limit(key = "{self.id}", rule(count = 1, per = "1h"))]
    fn later(&self) -> impl Future<Output = Result<u8, Rejection>> + Send {
        async move {
            self.runs.add();
            Ok(self.id)
        }
    }
}

shapes! {
    an_opaque_future => async |runs: &Runs| opaque(runs.clone(), "a".into()).await;
    an_opaque_future_to_send => async |runs: &Runs| sent(runs.clone()).await;
    an_opaque_future_that_borrows => async |runs: &Runs| borrowing(runs, "a").await.map(drop);
    an_opaque_future_that_does_not_move => async |runs: &Runs| not_moving(runs, "a").await;
    an_opaque_future_that_captures_nothing => async |runs: &Runs| {
        capturing_nothing(runs, "a", &Cell::new(1), Limiter::installed()).await
    };
    an_opaque_future_of_a_generic_function => async |runs: &Runs| generic(runs.clone(), 1, [1]).await;
    an_opaque_future_of_patterns => async |runs: &Runs| destructured(runs, (1, vec![])).await;
    a_boxed_future => async |runs: &Runs| boxed(runs).await;
    a_boxed_future_by_a_path => async |runs: &Runs| boxed_by_a_path(runs, "a".into()).await;
    a_boxed_future_under_an_alias => async |runs: &Runs| boxed_under_an_alias(runs).await;
    a_boxed_future_by_a_method => async |runs: &Runs| boxed_by_a_method(runs).await;
    a_local_boxed_future_by_a_method => async |runs: &Runs| boxed_locally(runs).await;
    a_boxed_future_that_only_returns => async |runs: &Runs| never_ending(runs).await;
    a_method_with_an_opaque_future => async |runs: &Runs| Service::of(1, runs).opaque().await;
    a_method_with_a_boxed_future => async |runs: &Runs| Service::of(1, runs).boxed().await;
    a_method_by_value_with_a_boxed_future => async |runs: &Runs| Service::of(1, runs).consuming().await;
    a_method_of_a_trait_with_an_opaque_future => async |runs: &Runs| Service::of(1, runs).later().await;
    a_provided_method_with_an_opaque_future => async |runs: &Runs| Service::of(1, runs).provided(runs).await;
}

#[rate_limit(rule(count = 1, per = "1h"))]
fn prepared(before: &Runs, runs: Runs) -> impl Future<Output = Result<(), Rejection>> + use<> {
    before.add();
    async move {
        runs.add();
        Ok(())
    }
}

#[tokio::test]
async fn what_stands_before_the_future_runs_when_the_function_is_called() {
    let (before, runs) = (Runs::default(), Runs::default());
    drop(prepared(&before, runs.clone()));
    assert_eq!((before.count(), runs.count()), (1, 0));
    prepared(&before, runs.clone()).await.unwrap();
    assert_limited(prepared(&before, runs.clone()).await);
    assert_eq!((before.count(), runs.count()), (3, 1));
}
