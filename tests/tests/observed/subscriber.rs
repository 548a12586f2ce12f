//! A subscriber and a recorder of the whole process that call limited functions for whatever they are told.

use std::env;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Recorder, SharedString, Unit};
use tallygate::config::Policies;
use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::{Server, free_port};
use tallygate_harness::until::wait_until;
use tokio::runtime::Runtime;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const HOUR: Duration = Duration::from_secs(3_600);

/// Set in the process in which one of them is installed.
const INSIDE: &str = "TALLYGATE_TEST_SUBSCRIBER";

static TOLD: AtomicUsize = AtomicUsize::new(0);
static LIMITERS: OnceLock<[Limiter; 3]> = OnceLock::new();

#[rate_limit(key = "all", rule(count = 1, per = "1h"))]
fn installed() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(key = "all", rule(count = 1, per = "1h"), limiter = limiter)]
fn chosen(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[rate_limit(key = "all", concurrency(limit = 9, lease = "1h"))]
fn concurrent() -> Result<(), Rejection> {
    Ok(())
}

/// Keeps no line and no number, and denies nearly each.
struct Hostile;

impl Hostile {
    fn told(metadata: &Metadata<'_>) {
        if metadata.target().starts_with("tallygate") || metadata.target().starts_with("observed") {
            Self::call();
        }
    }

    fn call() {
        TOLD.fetch_add(1, Ordering::Relaxed);
        _ = installed();
        _ = concurrent();
        LIMITERS.get().into_iter().flatten().for_each(|limiter| _ = chosen(limiter));
    }
}

impl Recorder for Hostile {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        Self::call();
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        Self::call();
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        Self::call();
    }

    fn register_counter(&self, _: &Key, _: &metrics::Metadata<'_>) -> Counter {
        Self::call();
        Counter::from_arc(Arc::new(Self))
    }

    fn register_gauge(&self, _: &Key, _: &metrics::Metadata<'_>) -> Gauge {
        Self::call();
        Gauge::from_arc(Arc::new(Self))
    }

    fn register_histogram(&self, _: &Key, _: &metrics::Metadata<'_>) -> Histogram {
        Self::call();
        Histogram::from_arc(Arc::new(Self))
    }
}

impl CounterFn for Hostile {
    fn increment(&self, _: u64) {
        Self::call();
    }

    fn absolute(&self, _: u64) {
        Self::call();
    }
}

impl GaugeFn for Hostile {
    fn increment(&self, _: f64) {
        Self::call();
    }

    fn decrement(&self, _: f64) {
        Self::call();
    }

    fn set(&self, _: f64) {
        Self::call();
    }
}

impl HistogramFn for Hostile {
    fn record(&self, _: f64) {
        Self::call();
    }
}

impl Subscriber for Hostile {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Self::told(span.metadata());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        _ = installed();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        Self::told(event.metadata());
    }

    fn enter(&self, _: &Id) {
        _ = installed();
    }

    fn exit(&self, _: &Id) {
        _ = installed();
    }

    fn try_close(&self, _: Id) -> bool {
        _ = installed();
        true
    }
}

/// Lets this limiter say what it can.
async fn use_everything(limiter: &Limiter, policy: &Policy) {
    let subject = Subject::of("s");
    for _ in 0..3 {
        _ = limiter.check(policy, &subject).await;
        _ = limiter.check(policy, &subject).wait(Duration::from_millis(1)).await;
        _ = limiter.check(policy, &subject).blocking_decide();
    }
    // A rule that the policy does not have.
    _ = limiter.override_policy("heard").text("#none = 0 per 1h").set().await;
    _ = limiter.override_policy("heard").text("5 per 1h").expires_in(Duration::from_millis(1)).set().await;
    _ = limiter.check(policy, &subject).await;
    _ = limiter.override_policy("heard").clear().await;
    let file = Policies::from_toml("[policy.heard]\nrules = [\"3 per 1h\"]\nplans.free = 3").unwrap();
    _ = limiter.apply(&file);
    _ = limiter.check(policy, &subject).await;
    _ = limiter.ping().await;
}

/// Lets this limiter use what has a gauge, or is counted when it is first there.
async fn count_everything(limiter: &Limiter) {
    let several =
        Policy::builder("several").rule(Rule::sliding_window(1, HOUR)).rule_on("b", Rule::concurrency(1, HOUR));
    let several = several.build().unwrap();
    for number in 0..3 {
        let (one, other) = (Subject::of(number), Subject::of("b").and(number));
        let check = || limiter.check(&several, &one).subject("b", &other);
        _ = check().await.map(drop);
        _ = check().wait(Duration::from_millis(1)).await;
        _ = check().reset_all().await;
    }
}

fn install_subscriber() {
    tracing::subscriber::set_global_default(Hostile).unwrap();
    tracing::info!("the first line of the program");
}

fn install_recorder() {
    metrics::set_global_recorder(Hostile).unwrap();
}

fn call_within(install: fn()) {
    install();
    let mut server = Server::start();
    let away = format!("redis://127.0.0.1:{}/", free_port());
    let open =
        |url: &str| Limiter::builder().deadline(Duration::from_secs(1)).denied_subjects(10).connect_lazy(url).unwrap();
    let limiters = LIMITERS.get_or_init(|| [Limiter::in_memory(), open(&server.url()), open(&away)]);
    let policy = Policy::builder("heard").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    Runtime::new().unwrap().block_on(async {
        for limiter in limiters {
            use_everything(limiter, &policy).await;
        }
        count_everything(&limiters[0]).await;
        count_everything(&limiters[1]).await;
        server.kill();
        use_everything(&limiters[1], &policy).await;
        server.restart();
        use_everything(&limiters[1], &policy).await;
    });
    assert!(TOLD.load(Ordering::Relaxed) > 20, "it was told of what happened");
}

/// A process that is killed when it has not ended by itself.
struct Inside(Child);

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// Plays a test in a process of its own.
pub(super) fn assert_ends(name: &str, play: fn()) {
    if env::var_os(INSIDE).is_some() {
        return play();
    }
    let mut process = Command::new(env::current_exe().unwrap());
    let process = process.args([name, "--exact", "--nocapture"]).env(INSIDE, "1");
    let mut process = Inside(process.spawn().unwrap());
    let mut status = None;
    wait_until("the process ends", || {
        status = process.0.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

#[test]
fn one_that_calls_limited_functions_neither_hangs_nor_overflows_a_stack() {
    assert_ends("subscriber::one_that_calls_limited_functions_neither_hangs_nor_overflows_a_stack", || {
        call_within(install_subscriber);
    });
}

#[test]
fn a_recorder_that_calls_limited_functions_neither_hangs_nor_overflows_a_stack() {
    assert_ends("subscriber::a_recorder_that_calls_limited_functions_neither_hangs_nor_overflows_a_stack", || {
        call_within(install_recorder);
    });
}
