//! Expansions are silent under the strictest lints that a user may deny.

use std::fmt::Display;
use std::sync::{Arc, LazyLock};

use tallygate::{FromRejection, Limiter, Policy, Rejection, rate_limit};

/// A service with a limiter of its own.
#[derive(Debug)]
pub struct Service {
    limiter: Arc<Limiter>,
    tenant: String,
    calls: u32,
}

impl Service {
    /// Counts the calls.
    ///
    /// # Errors
    ///
    /// There are too many.
    #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"), limiter = self.limiter, check_fn = count_limit)]
    pub async fn count(&mut self) -> Result<u32, Rejection> {
        self.calls += 1;
        Ok(self.calls)
    }
}

/// Shows its arguments, some of which have names that are much like ours.
#[rate_limit(
    key = "{text}/{number}/{limiters.len()}",
    rule(count = 1, per = "60s"),
    prevent_duplicate,
    check_fn = show_limit
)]
async fn show<T: Display + Sync + Send>(
    text: &str,
    subjects: String,
    number: T,
    limiters: Vec<u8>,
) -> Result<String, Rejection> {
    const SEPARATOR: &str = ", ";
    fn join(one: &str, other: &str) -> String {
        format!("{one}{SEPARATOR}{other}")
    }
    let policies = join(text, &subjects);
    drop((subjects, limiters));
    Ok(join(&policies, &number.to_string()))
}

/// Returns something else than a `Result`.
#[rate_limit(rule(count = 1, per = "60s"))]
async fn text() -> Text {
    Text("admitted")
}

/// Says all that can be said.
#[rate_limit(
    prevent_duplicate(per = "5s", message = "again, {text}?"),
    rule(count = calls, per = "60s", name = "varying", message = "not now, {text:trim}"),
    rule(count = 9, per = "60s", algorithm = "fixed_window"),
    rule(count = 9, per = "60s", algorithm = "token_bucket", capacity = 10, initial = 9, reset_after = "60s"),
    rule(count = 9, cron = "@daily", tz = "UTC"),
    key = "{text:lower:hash}",
    message = "{@rule}: {@count} per {@per}; {text:hash}, try again in {@retry_after}",
    reject = |rejection| rejection.to_string(),
    limiter = limiter,
    crate = ::tallygate
)]
async fn all(text: &str, calls: u64, limiter: &Limiter) -> String {
    format!("{text} {calls} {limiter:?}").chars().take(3).collect()
}

/// Says all that can be said around a limit.
///
/// # Errors
///
/// There are too many.
#[rate_limit(
    key = "{text}",
    prevent_duplicate(key = "{text}:{calls}"),
    rule(count = calls, per = "60s"),
    rule(count = 9, per = "60s", key = "{text:lower}"),
    ban(denials = 9, within = "60s", duration = "60s", message = "gone, {text:hash}"),
    cost = u64::from(text.len() > 9) + 1,
    wait = "1ms",
    refund_if = Result::is_err,
    skip_if = text.is_empty(),
    message = "not now, {text}",
    limiter = limiter,
    check_fn = around_limit
)]
async fn around(text: &str, mut calls: u64, limiter: &Limiter) -> Result<u64, Rejection> {
    calls += 1;
    if text.is_empty() {
        return Ok(0);
    }
    let calls = Ok::<_, Rejection>(calls)?;
    Ok(calls)
}

/// Tries a limit out.
#[rate_limit(rule(count = 1, per = "60s"), shadow, refund_if = |()| cfg!(doc), reject = drop)]
async fn tried(number: &mut u8) {
    *number += 1;
}

/// A policy for several functions.
static POLICY: LazyLock<Option<Policy>> = LazyLock::new(|| {
    Policy::builder("lints").rule(tallygate::Rule::sliding_window(1, std::time::Duration::from_secs(60))).build().ok()
});

/// Goes by that policy.
///
/// # Errors
///
/// There are too many.
#[rate_limit(policy = policy, skip_if = policy.name().is_empty(), check_fn = shared_limit)]
async fn shared(policy: &Policy) -> Result<usize, Rejection> {
    Ok(policy.rules().len())
}

/// Has one message for all rules.
///
/// # Errors
///
/// There are too many.
#[rate_limit(rule(count = 1, per = "60s"), message = "not now, {text}")]
async fn with_message(text: &str) -> Result<usize, Rejection> {
    Ok(text.len())
}

/// A type of the user's own that carries rejections.
#[derive(Debug, PartialEq, Eq)]
struct Text(&'static str);

impl FromRejection for Text {
    fn from_rejection(_: Rejection) -> Self {
        Self("rejected")
    }
}

/// Uses no argument in its limits.
///
/// # Errors
///
/// There are too many.
#[rate_limit(rule(count = 1, per = "60s"), check_fn = unused_limit)]
#[expect(clippy::too_many_arguments, reason = "of the function, and so of its companion")]
pub async fn unused<T: Send + Sync>(
    mut number: u8,
    (mut text, _): (String, u8),
    bytes: Vec<u8>,
    large: &T,
    small: &u8,
    changed: &mut u8,
    _ignored: u8,
    ignored: Option<&'static str>,
) -> Result<usize, Rejection> {
    number += *small;
    text.push('a');
    *changed += number;
    let _ = (large, ignored);
    Ok(text.len() + bytes.len())
}

#[tokio::test]
async fn functions_under_strict_lints_are_limited_all_the_same() {
    let mut service = Service { limiter: Arc::new(Limiter::in_memory()), tenant: "acme".to_owned(), calls: 0 };
    assert_eq!(service.count().await.ok(), Some(1));
    assert_eq!(service.count().await.ok(), None);
    assert_eq!(show("a", "b".to_owned(), 1, Vec::new()).await.ok().as_deref(), Some("a, b, 1"));
    assert_eq!(show("a", "b".to_owned(), 1, Vec::new()).await.ok(), None);
    let limiter = Limiter::in_memory();
    assert_eq!(all("abc", 0, &limiter).await, "not now, abc");
    assert_eq!(all("abc", 1, &limiter).await, "abc");
    assert_eq!(all("abc", 1, &limiter).await, "again, abc?");
    assert_eq!(with_message("a").await.ok(), Some(1));
    assert_eq!(with_message("a").await.err().map(|rejection| rejection.to_string()).as_deref(), Some("not now, a"));
    assert_eq!((around("a", 1, &limiter).await.ok(), around("a", 1, &limiter).await.ok()), (Some(2), None));
    assert_eq!((around("", 0, &limiter).await.ok(), around("", 0, &limiter).await.ok()), (Some(0), Some(0)));
    let mut number = 0;
    tried(&mut number).await;
    tried(&mut number).await;
    assert_eq!(number, 2);
    if let Some(policy) = &*POLICY {
        assert_eq!((shared(policy).await.ok(), shared(policy).await.ok()), (Some(1), None));
    }
    assert_eq!(unused(1, (String::new(), 1), Vec::new(), &(), &1, &mut 1, 1, None).await.ok(), Some(1));
    let checks = [
        service.count_limit(),
        show_limit("a", "b".to_owned(), 1, Vec::new()),
        around_limit("a", 1, &limiter),
        unused_limit(1, (String::new(), 1), Vec::new(), &(), &1, &mut 1, 1, None),
    ];
    for check in checks {
        assert_eq!(check.peek().await.ok().map(|decision| decision.is_allowed()), Some(false));
    }
    if let Some(policy) = &*POLICY {
        assert_eq!(shared_limit(policy).peek().await.ok().map(|decision| decision.is_allowed()), Some(false));
    }
    assert_eq!(text().await, Text("admitted"));
    assert_eq!(text().await, Text("rejected"));
}
