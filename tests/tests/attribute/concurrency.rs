//! Concurrency limits are rules of the policy, behind all others.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use async_trait::async_trait;
use tallygate::{HoldPermit, Limiter, Permit, Policy, Rejection, rate_limit};

struct Plan {
    tenant: &'static str,
}

impl Plan {
    fn exports(&self) -> u64 {
        self.tenant.len() as u64
    }
}

const PLAN: Plan = Plan { tenant: "acme" };

/// Returns the rules of a policy in their text form.
fn rules(policy: &Policy) -> Vec<String> {
    policy.rules().iter().map(ToString::to_string).collect()
}

#[rate_limit(
    name = "concurrency.export",
    key = "{user}",
    concurrency(limit = 3, lease = "30s", message = "{@count} exports at once are enough"),
    concurrency(limit = plan.exports(), lease = "1m", key = "{plan.tenant}", name = "exports"),
    prevent_duplicate,
    rule(count = 10, per = "60s"),
    check_fn = export_limit
)]
async fn export(user: &str, plan: &Plan) -> Result<(), Rejection> {
    let _ = (user, plan);
    Ok(())
}

#[test]
fn concurrent_calls_are_limited_by_rules_behind_the_others() {
    drop(export("zoe", &PLAN));
    drop(export_limit("zoe", &PLAN));
    let policy = Limiter::policy("concurrency.export").unwrap();
    let expected =
        ["prevent_duplicate per 5s", "10 per 1m", "3 concurrent lease 30s", "n concurrent lease 1m as exports"];
    assert_eq!(rules(&policy), expected);
}

#[rate_limit(name = "concurrency.alone", concurrency(limit = 1, lease = "1s"), check_fn = alone_limit)]
async fn alone() -> Result<(), Rejection> {
    Ok(())
}

#[test]
fn a_function_may_have_no_other_limit() {
    drop(alone());
    drop(alone_limit());
    assert_eq!(rules(&Limiter::policy("concurrency.alone").unwrap()), ["1 concurrent lease 1s"]);
}

/// The shapes of functions that keep their permits: they compile without a warning, whatever they return.
mod shapes {
    #![deny(warnings, clippy::pedantic)]

    use super::{Future, Pin, Rejection, async_trait, rate_limit};

    #[rate_limit(concurrency(limit = 1, lease = "30s"))]
    pub(super) async fn borrowed<'a>(text: &'a str, other: &str) -> Result<&'a str, Rejection> {
        let _ = other;
        Ok(text)
    }

    #[rate_limit(key = "{text}", concurrency(limit = 1, lease = "30s"))]
    pub(super) fn opaque(text: &str) -> impl Future<Output = Result<usize, Rejection>> + Send + use<> {
        let length = text.len();
        async move { Ok(length) }
    }

    #[rate_limit(key = "{text}", concurrency(limit = 1, lease = "30s"))]
    pub(super) fn boxed(text: &str) -> Pin<Box<dyn Future<Output = Result<usize, Rejection>> + Send + '_>> {
        Box::pin(async move { Ok(text.len()) })
    }

    #[rate_limit(concurrency(limit = 1, lease = "30s"), rule(count = 9, per = "1h"), refund_if = Result::is_err)]
    pub(super) async fn generic<T: Send>(value: T) -> Result<T, Rejection> {
        Ok(value)
    }

    #[async_trait]
    pub(super) trait Export {
        #[rate_limit(key = "{*:debug}", concurrency(limit = 1, lease = "30s"))]
        async fn export(&self, (name, number): (String, u32)) -> Result<usize, Rejection> {
            Ok(name.len() + number as usize)
        }
    }
}

struct Exporter;

impl shapes::Export for Exporter {}

/// Whoever awaits a function on another thread needs a future that is `Send`.
fn assert_send<T>(future: impl Future<Output = T> + Send) {
    drop(future);
}

#[test]
fn the_future_that_holds_a_permit_is_send() {
    assert_send(export("zoe", &PLAN));
    assert_send(shapes::borrowed("zoe", ""));
    assert_send(shapes::opaque("zoe"));
    assert_send(shapes::boxed("zoe"));
    assert_send(shapes::generic(1));
    assert_send(shapes::Export::export(&Exporter, (String::new(), 1)));
}

/// A response whose body goes on as long as it is there.
struct Streamed(Option<Permit>);

impl HoldPermit for Streamed {
    fn hold_permit(self, permit: Permit) -> Self {
        Self(Some(permit))
    }
}

#[rate_limit(until = "body", concurrency(limit = 1, lease = "1m"), wait = "1h", limiter = limiter)]
async fn streamed(limiter: &Limiter) -> Result<Streamed, Rejection> {
    let _ = limiter;
    Ok(Streamed(None))
}

#[tokio::test]
async fn who_waits_is_admitted_when_the_body_of_a_response_is_over() {
    let limiter = Limiter::in_memory();
    let first = streamed(&limiter).await.unwrap();
    assert!(first.0.is_some());
    let mut second = pin!(streamed(&limiter));
    assert!(poll_fn(|context| Poll::Ready(second.as_mut().poll(context).is_pending())).await);
    drop(first);
    assert!(second.await.unwrap().0.is_some());
}
