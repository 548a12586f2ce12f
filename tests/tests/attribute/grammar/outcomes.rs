//! What a rejected call returns, and where the runtime is.

use tallygate::{Rejection, rate_limit};

use crate::grammar::Runs;

struct Page {
    status: u16,
    rejection: Option<Rejection>,
}

impl Page {
    fn limited(rejection: Rejection) -> Self {
        Self { status: 429, rejection: Some(rejection) }
    }
}

#[rate_limit(rule(count = 1, per = "60s"), reject = Page::limited)]
async fn by_path(runs: &Runs) -> Page {
    runs.count();
    Page { status: 200, rejection: None }
}

#[rate_limit(rule(count = 1, per = "60s"), message = "not now", reject = |rejection| (rejection.to_string(), lines.len()))]
async fn by_closure(lines: Vec<u8>) -> (String, usize) {
    (String::from("welcome"), lines.capacity())
}

#[rate_limit(rule(count = 1, per = "60s"), reject = drop)]
async fn by_nothing(runs: &Runs) {
    runs.count();
}

#[rate_limit(rule(count = 1, per = "60s"), reject = |_| None)]
async fn by_option() -> Option<u8> {
    Some(1)
}

#[tokio::test(start_paused = true)]
async fn a_function_may_say_what_it_returns_when_it_is_rejected() {
    let runs = Runs::default();
    let welcome = by_path(&runs).await;
    assert_eq!((welcome.status, welcome.rejection.is_none()), (200, true));
    let rejected = by_path(&runs).await;
    assert_eq!((rejected.status, runs.0.get()), (429, 1));
    assert_eq!(rejected.rejection.unwrap().rule().unwrap().count(), 1);
    assert_eq!(by_closure(vec![1]).await.0, "welcome");
    assert_eq!(by_closure(vec![1, 2]).await, ("not now".to_owned(), 2));
    by_nothing(&runs).await;
    by_nothing(&runs).await;
    assert_eq!(runs.0.get(), 2);
    assert_eq!((by_option().await, by_option().await), (Some(1), None));
}

mod reexports {
    pub(super) use tallygate as limits;
}

/// Knows the runtime by its other name alone.
mod elsewhere {
    use super::reexports::limits::{Rejection, rate_limit};

    #[rate_limit(
        crate = crate::grammar::outcomes::reexports::limits,
        key = "{value:lower}",
        rule(count = 1, per = "60s"),
        message = "not now, {value}"
    )]
    pub(super) async fn renamed(value: &str) -> Result<usize, Rejection> {
        Ok(value.len())
    }

    #[rate_limit(crate = ::tallygate, rule(count = 1, per = "60s"))]
    pub(super) async fn absolute() -> Result<(), Rejection> {
        Ok(())
    }
}

#[tokio::test]
async fn the_runtime_may_have_another_path() {
    assert_eq!(elsewhere::renamed("x").await.unwrap(), 1);
    assert_eq!(elsewhere::renamed("X").await.unwrap_err().to_string(), "not now, X");
    elsewhere::absolute().await.unwrap();
    elsewhere::absolute().await.unwrap_err();
}
