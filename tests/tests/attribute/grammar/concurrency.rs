//! `concurrency`: a call is running until its body is over, however that ends.

use std::future::{Future, pending};
use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};
use tallygate_harness::server::Server;
use tallygate_harness::until::until_found;
use tokio::sync::oneshot;

/// How the body of a call ends.
enum End {
    Result,
    Error,
    Panic,
    Never,
}

#[derive(Debug, PartialEq)]
enum Failure {
    Failed,
    Rejected(RejectionKind),
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection.kind())
    }
}

const FULL: Result<(), Failure> = Err(Failure::Rejected(RejectionKind::Concurrency));

#[rate_limit(
    name = "grammar.export",
    key = "{customer}",
    concurrency(limit = 1, lease = "30s", message = "one at a time, {customer}"),
    concurrency(limit = 2, lease = "60s", key = "all", name = "all"),
    limiter = limiter
)]
async fn export(customer: &str, limiter: &Limiter, begun: oneshot::Sender<()>, end: End) -> Result<(), Failure> {
    let _ = (customer, begun.send(()));
    tokio::task::yield_now().await;
    match end {
        End::Result => Ok(()),
        End::Error => Err(Failure::Failed)?,
        End::Panic => panic!("as the test wants"),
        End::Never => pending().await,
    }
}

/// Runs an export in a task of its own, until it has begun.
async fn begin(limiter: &Limiter, customer: &'static str, end: End) -> tokio::task::JoinHandle<Result<(), Failure>> {
    let (begun, has_begun) = oneshot::channel();
    let limiter = limiter.clone();
    let task = tokio::spawn(async move { export(customer, &limiter, begun, end).await });
    has_begun.await.unwrap();
    task
}

async fn ask(limiter: &Limiter, customer: &str) -> Result<(), Failure> {
    export(customer, limiter, oneshot::channel().0, End::Result).await
}

async fn a_call_is_over_by_result_error_panic_and_drop(limiter: &Limiter) {
    for end in [End::Result, End::Error, End::Panic, End::Never] {
        let is_dropped = matches!(end, End::Never);
        let running = begin(limiter, "alice", end).await;
        if is_dropped {
            assert_eq!(ask(limiter, "alice").await, FULL);
            let other = begin(limiter, "bob", End::Never).await;
            // Two are running in all.
            assert_eq!(ask(limiter, "carol").await, FULL);
            other.abort();
            running.abort();
        }
        let _ = running.await;
        until_found("the call is over", async || ask(limiter, "alice").await == Ok(())).await;
        until_found("both calls are over", async || ask(limiter, "carol").await == Ok(())).await;
    }
}

#[tokio::test]
async fn in_memory_a_call_is_running_until_its_body_is_over() {
    a_call_is_over_by_result_error_panic_and_drop(&Limiter::in_memory()).await;
}

#[tokio::test]
async fn in_redis_a_call_is_running_until_its_body_is_over() {
    let server = Server::start();
    a_call_is_over_by_result_error_panic_and_drop(&server.limiter().await).await;
}

#[rate_limit(name = "grammar.plain", key = "{user}", rule(count = 100, per = "1h"), limiter = limiter)]
async fn plain<F: Future<Output = ()>>(user: &str, limiter: &Limiter, body: F) -> Result<(), Failure> {
    let _ = user;
    body.await;
    Ok(())
}

#[tokio::test]
async fn in_memory_an_override_limits_the_concurrent_calls_of_a_function_that_has_no_such_limit() {
    let limiter = Limiter::in_memory();
    let rules = [Rule::sliding_window(100, Duration::from_secs(3_600)), Rule::concurrency(1, Duration::from_secs(30))];
    limiter.override_policy("grammar.plain").allow_unknown().rules(rules).set().await.unwrap();
    let nested = async || plain("alice", &limiter, async {}).await;
    let outer = plain("alice", &limiter, async {
        assert_eq!(nested().await, FULL);
        assert_eq!(plain("bob", &limiter, async {}).await, Ok(()));
    });
    assert_eq!(outer.await, Ok(()));
    assert_eq!(nested().await, Ok(()));
    limiter.override_policy("grammar.plain").clear().await.unwrap();
    plain("alice", &limiter, async { assert_eq!(nested().await, Ok(())) }).await.unwrap();
}

static POLICY: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(|| {
    let policy = Policy::builder("grammar.elsewhere").rule(Rule::concurrency(1, Duration::from_secs(30)));
    policy.build().unwrap()
});

#[rate_limit(policy = &*POLICY, key = "{user}", wait = "5s", limiter = limiter)]
async fn elsewhere<F: Future<Output = ()>>(user: &str, limiter: &Limiter, body: F) -> Result<(), Failure> {
    let _ = user;
    body.await;
    Ok(())
}

#[tokio::test]
async fn in_memory_a_function_waits_for_the_concurrent_call_of_a_policy_that_is_built_elsewhere() {
    let limiter = Limiter::in_memory();
    let (begun, has_begun) = oneshot::channel();
    let (go_on, goes_on) = oneshot::channel();
    let first = elsewhere("alice", &limiter, async {
        begun.send(()).unwrap();
        goes_on.await.unwrap();
    });
    let second = async {
        has_begun.await.unwrap();
        let alice = Subject::of("alice");
        assert!(!limiter.check(&POLICY, &alice).await.unwrap().is_allowed());
        let waiting = elsewhere("alice", &limiter, async {});
        tokio::join!(waiting, async { go_on.send(()).unwrap() }).0
    };
    assert_eq!(tokio::join!(first, second), (Ok(()), Ok(())));
}
