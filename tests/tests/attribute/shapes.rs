//! Every shape of function is limited: its body runs exactly once when the call is admitted, and not at all when not.

#![allow(clippy::toplevel_ref_arg, reason = "shapes that no style guide would have are shapes, too")]

mod attributes;
mod futures;
mod methods;

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tallygate::{FromRejection, Rejection, rate_limit};

use crate::{Failure, assert_limited};

/// How often a body ran.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Plays a function that admits one call.
pub(crate) async fn assert_runs_once<T, E: Into<Failure>>(call: impl AsyncFn(&Runs) -> Result<T, E>) {
    let runs = Runs::default();
    assert!(call(&runs).await.is_ok(), "the first call is admitted");
    assert_eq!(runs.count(), 1);
    assert_limited(call(&runs).await);
    assert_limited(call(&runs).await);
    assert_eq!(runs.count(), 1);
}

/// A test for each shape, named after it.
macro_rules! shapes {
    ($($shape:ident => $call:expr;)*) => { $(
        #[tokio::test]
        async fn $shape() {
            $crate::shapes::assert_runs_once($call).await;
        }
    )* };
}
pub(crate) use shapes;

#[rate_limit(rule(count = 1, per = "1h"))]
async fn free(runs: &Runs) -> Result<(), Rejection> {
    runs.add();
    Ok(())
}

pub(crate) mod visible {
    use super::{Rejection, Runs, rate_limit};

    #[rate_limit(rule(count = 1, per = "1h"))]
    pub(in crate::shapes) async fn restricted(runs: &Runs) -> Result<(), Rejection> {
        runs.add();
        Ok(())
    }
}

/// Says something.
#[must_use = "it says something"]
#[inline]
#[cfg(test)]
#[allow(clippy::unused_async)]
#[rate_limit(rule(count = 1, per = "1h"))]
#[deprecated = "for a test"]
#[doc(hidden)]
async fn attributed(runs: &Runs) -> Result<u8, Rejection> {
    runs.add();
    Ok(1)
}

#[rate_limit(key = "{value}", rule(count = 1, per = "1h"))]
async fn bounded<T: Display + Debug>(runs: &Runs, value: T) -> Result<String, Rejection> {
    runs.add();
    Ok(format!("{value:?}"))
}

#[rate_limit(key = "{value}", rule(count = 1, per = "1h"))]
async fn with_clause<T>(runs: &Runs, value: T) -> Result<T, Rejection>
where
    T: Display + Clone,
{
    runs.add();
    Ok(value.clone())
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn sized<const N: usize>(runs: &Runs, bytes: [u8; N]) -> Result<[u8; N], Rejection> {
    runs.add();
    Ok(bytes)
}

#[rate_limit(key = "{one}", rule(count = 1, per = "1h"))]
async fn lifetimes<'a, 'b: 'a>(runs: &Runs, one: &'a str, other: &'b str) -> Result<&'a str, Rejection> {
    runs.add();
    Ok(if one.is_empty() { other } else { one })
}

#[rate_limit(key = "{text}", rule(count = 1, per = "1h"))]
async fn elided<'a>(runs: &Runs, text: &'a str) -> Result<std::borrow::Cow<'a, str>, Failure> {
    runs.add();
    Ok(text.into())
}

#[rate_limit(key = "{shown}", rule(count = 1, per = "1h"))]
async fn taking_impl(runs: &Runs, shown: impl Display) -> Result<String, Rejection> {
    runs.add();
    Ok(shown.to_string())
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn returning_impl(runs: &Runs) -> Result<impl Display + use<>, Rejection> {
    runs.add();
    Ok("shown")
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn returning_dyn(runs: &Runs) -> Result<Box<dyn Display>, Rejection> {
    runs.add();
    Ok(Box::new(1))
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn returning_a_function(runs: &Runs) -> Result<fn(u8) -> u8, Rejection> {
    runs.add();
    Ok(u8::wrapping_neg)
}

struct Json<T>(T);

#[rate_limit(key = "{a}:{b}:{first}:{whole.0}", rule(count = 1, per = "1h"))]
async fn destructured(
    runs: &Runs,
    (a, Json(b)): (u8, Json<u8>),
    [first, ..]: [u8; 3],
    whole @ Json(_): Json<u8>,
    _: u8,
) -> Result<u8, Rejection> {
    runs.add();
    Ok(a + b + first + whole.0)
}

#[rate_limit(key = "{list.len()}", rule(count = 1, per = "1h"))]
async fn mutable(runs: &Runs, mut list: Vec<u8>, (ref kept, _): (String, u8)) -> Result<usize, Rejection> {
    runs.add();
    list.push(1);
    Ok(list.len() + kept.len())
}

#[rate_limit(key = "{r#match}:{loop}", rule(count = 1, per = "1h"))]
async fn r#type(runs: &Runs, r#match: u8, r#loop: u8) -> Result<u8, Rejection> {
    runs.add();
    Ok(r#match + r#loop)
}

async fn around(runs: &Runs) -> Result<(), Rejection> {
    #[rate_limit(rule(count = 1, per = "1h"))]
    async fn within(runs: &Runs) -> Result<(), Rejection> {
        runs.add();
        Ok(())
    }
    within(runs).await
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn around_another(runs: &Runs) -> Result<(), Rejection> {
    #[rate_limit(rule(count = 2, per = "1h"))]
    async fn within(runs: &Runs) -> Result<(), Rejection> {
        runs.add();
        Ok(())
    }
    within(runs).await
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn own_type(runs: &Runs) -> Answer {
    runs.add();
    Answer(Ok(()))
}

struct Answer(Result<(), Rejection>);

impl FromRejection for Answer {
    fn from_rejection(rejection: Rejection) -> Self {
        Self(Err(rejection))
    }
}

#[rate_limit(rule(count = 1, per = "1h"))]
async fn diverging_paths(runs: &Runs) -> Result<u8, Failure> {
    runs.add();
    if runs.count() > 0 {
        return Ok(1);
    }
    loop {
        tokio::task::yield_now().await;
    }
}

macro_rules! made {
    ($name:ident, $argument:ident: $kind:ty, $key:literal) => {
        #[rate_limit(key = $key, rule(count = 1, per = "1h"))]
        async fn $name(runs: &Runs, $argument: $kind) -> Result<$kind, Rejection> {
            runs.add();
            Ok($argument)
        }
    };
}

made!(made_by_a_macro, number: u8, "{number}");

macro_rules! around_a_block {
    ($(#[$attribute:meta])* $visibility:vis $name:ident, $runs:ident, $result:ty, $body:block) => {
        $(#[$attribute])*
        #[rate_limit(rule(count = 1, per = "1h"))]
        $visibility async fn $name($runs: &Runs) -> $result $body
    };
}

around_a_block!(
    /// A function whose body is one fragment of a macro.
    body_of_a_macro,
    runs,
    Result<u8, Failure>,
    {
        runs.add();
        Ok(1)
    }
);

macro_rules! around_an_async_block {
    ($name:ident, $runs:ident, $before:item, $body:block) => {
        #[rate_limit(rule(count = 1, per = "1h"))]
        fn $name($runs: &Runs) -> impl Future<Output = Result<u8, Failure>> {
            $before
            async move $body
        }
    };
}

around_an_async_block!(
    async_block_of_a_macro,
    runs,
    fn one() -> u8 {
        1
    },
    {
        runs.add();
        Ok(one())
    }
);

macro_rules! around_a_future {
    ($name:ident, $runs:ident, $result:ty, $future:expr) => {
        #[rate_limit(rule(count = 1, per = "1h"))]
        fn $name($runs: &Runs) -> $result {
            $future
        }
    };
}

around_a_future!(future_of_a_macro, runs, impl Future<Output = Result<u8, Failure>>, async move {
    runs.add();
    Ok(1)
});

macro_rules! around_an_item {
    ($item:item) => {
        #[rate_limit(rule(count = 1, per = "1h"))]
        $item
    };
}

around_an_item! {
    async fn item_of_a_macro(runs: &Runs) -> Result<u8, Failure> {
        runs.add();
        Ok(1)
    }
}

#[rate_limit(key = "{*}", check_fn = check_conditional, rule(count = 1, per = "1h"))]
async fn conditional(
    #[cfg(test)] present: u8,
    #[cfg(not(test))] absent: NoSuchType,
    #[cfg(any())]
    #[cfg(test)]
    absent_too: NoSuchType,
) -> Result<u8, Rejection> {
    Ok(present)
}

shapes! {
    a_free_function => free;
    a_function_of_restricted_visibility => visible::restricted;
    a_function_with_bounds => async |runs: &Runs| bounded(runs, "a").await;
    a_function_with_a_where_clause => async |runs: &Runs| with_clause(runs, 1).await;
    a_function_of_a_const_parameter => async |runs: &Runs| sized(runs, [1, 2]).await;
    a_function_of_lifetimes => async |runs: &Runs| lifetimes(runs, "a", "b").await.map(drop);
    a_function_that_returns_what_it_borrows => async |runs: &Runs| elided(runs, "a").await.map(drop);
    a_function_that_takes_an_impl => async |runs: &Runs| taking_impl(runs, 'a').await;
    a_function_that_returns_an_impl => returning_impl;
    a_function_that_returns_a_trait_object => returning_dyn;
    a_function_that_returns_a_function => returning_a_function;
    a_function_of_patterns => async |runs: &Runs| destructured(runs, (1, Json(2)), [3; 3], Json(4), 5).await;
    a_function_of_mutable_arguments => async |runs: &Runs| mutable(runs, vec![1], (String::new(), 1)).await;
    a_function_of_raw_identifiers => async |runs: &Runs| r#type(runs, 1, 2).await;
    a_function_in_a_function => around;
    a_function_in_a_limited_function => around_another;
    a_function_of_a_type_of_ones_own => async |runs: &Runs| own_type(runs).await.0;
    a_function_with_a_loop_at_its_end => diverging_paths;
    a_function_made_by_a_macro => async |runs: &Runs| made_by_a_macro(runs, 1).await;
    a_function_whose_body_is_a_block_of_a_macro => body_of_a_macro;
    a_function_whose_future_is_an_expression_of_a_macro => future_of_a_macro;
    a_function_whose_async_block_is_a_fragment_of_a_macro => async_block_of_a_macro;
    a_function_that_is_an_item_of_a_macro => item_of_a_macro;
}

#[tokio::test]
#[allow(deprecated)]
async fn a_function_with_other_attributes() {
    assert_runs_once(attributed).await;
}

#[tokio::test]
async fn a_function_of_conditional_arguments_is_limited_by_those_that_are_compiled() {
    assert_eq!(conditional(1).await.unwrap(), 1);
    assert_limited(conditional(1).await);
    assert!(!check_conditional(1).peek().await.unwrap().is_allowed());
    assert_eq!(conditional(2).await.unwrap(), 2);
}
