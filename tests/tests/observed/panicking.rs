//! A subscriber, a recorder and a listener to warnings that panic whenever they are told something: nothing is lost.

use std::future::{Future, IntoFuture as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Recorder, SharedString, Unit};
use tallygate::{Check, Limiter, Permit, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::Server;
use tallygate_harness::until::until_found;
use tokio::runtime::Runtime;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::subscriber::assert_ends;

const HOUR: Duration = Duration::from_secs(3_600);

/// Whether they panic now.
static PANICS: AtomicBool = AtomicBool::new(false);
static PANICKED: AtomicUsize = AtomicUsize::new(0);

struct Panicking;

impl Panicking {
    fn told() {
        if PANICS.load(Ordering::SeqCst) {
            PANICKED.fetch_add(1, Ordering::SeqCst);
            // Without the report of a panic, of which there would be thousands.
            resume_unwind(Box::new("as a mistaken observer does"));
        }
    }
}

impl Recorder for Panicking {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &metrics::Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Self))
    }

    fn register_gauge(&self, _: &Key, _: &metrics::Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Self))
    }

    fn register_histogram(&self, _: &Key, _: &metrics::Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Self))
    }
}

impl CounterFn for Panicking {
    fn increment(&self, _: u64) {
        Self::told();
    }

    fn absolute(&self, _: u64) {
        Self::told();
    }
}

impl GaugeFn for Panicking {
    fn increment(&self, _: f64) {
        Self::told();
    }

    fn decrement(&self, _: f64) {
        Self::told();
    }

    fn set(&self, _: f64) {
        Self::told();
    }
}

impl HistogramFn for Panicking {
    fn record(&self, _: f64) {
        Self::told();
    }
}

impl Subscriber for Panicking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tallygate")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Self::told();
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        Self::told();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        Self::told();
    }

    fn enter(&self, _: &Id) {
        Self::told();
    }

    fn exit(&self, _: &Id) {
        Self::told();
    }

    fn try_close(&self, _: Id) -> bool {
        Self::told();
        true
    }
}

/// Runs a call while they panic. The call may panic, too.
async fn hindered(call: impl Future) {
    PANICS.store(true, Ordering::SeqCst);
    _ = AssertUnwindSafe(call).catch_unwind().await.map(drop);
    PANICS.store(false, Ordering::SeqCst);
}

fn hindered_here<T>(call: impl FnOnce() -> T) {
    PANICS.store(true, Ordering::SeqCst);
    _ = catch_unwind(AssertUnwindSafe(|| drop(call())));
    PANICS.store(false, Ordering::SeqCst);
}

struct Held {
    limiter: Limiter,
    policy: Policy,
}

impl Held {
    fn new(limiter: Limiter) -> Self {
        let rules = [Rule::concurrency(1, HOUR), Rule::sliding_window(100, HOUR)];
        let tokens = Rule::sliding_window(100, HOUR).counting("tokens");
        let policy = Policy::builder("held").rules(rules).rule(tokens).warn_at(0.01).pausable();
        Self { limiter, policy: policy.build().unwrap() }
    }

    fn check<'a>(&'a self, subject: &'a Subject) -> Check<'a> {
        self.limiter.check(&self.policy, subject).cost_of("tokens", 50)
    }

    async fn admitted(&self, subject: &Subject) -> Permit {
        self.check(subject).refundable().await.unwrap().into_result().unwrap()
    }

    /// Waits until no call of the subject is running, and no more than that is used of its calls and tokens.
    async fn until_left(&self, subject: &Subject, [calls, tokens]: [u64; 2]) {
        until_found("nothing is lost", async || {
            let peek = self.limiter.peek(&self.policy, subject).await;
            let used = |rule: usize| peek.as_ref().map_or(u64::MAX, |peek| peek.report()[rule].used());
            used(0) == 0 && used(1) <= calls && used(2) <= tokens
        })
        .await;
    }

    #[rate_limit(policy = self.policy, limiter = self.limiter, key = "attribute", unit("tokens", cost = 50, settle = |_| 7))]
    async fn settled(&self) -> Result<(), Rejection> {
        Ok(())
    }

    #[rate_limit(policy = self.policy, limiter = self.limiter, key = "plain", unit("tokens", cost = 50, settle = |_| 7))]
    fn settled_here(&self) -> Result<(), Rejection> {
        Ok(())
    }

    #[rate_limit(policy = self.policy, limiter = self.limiter, key = "broken", unit("tokens", cost = 50))]
    async fn broken(&self) -> Result<(), Rejection> {
        PANICS.store(true, Ordering::SeqCst);
        panic!("as a mistaken body does")
    }

    /// `settled` is what a function uses of its tokens.
    async fn play(&self, settled: u64) {
        let decided = Subject::of("decided");
        hindered(self.check(&decided).into_future()).await;
        self.until_left(&decided, [1, 50]).await;
        hindered(self.check(&decided).wait(Duration::from_millis(1)).into_future()).await;
        self.until_left(&decided, [2, 100]).await;
        hindered(self.check(&decided).into_future()).await;
        hindered_here(|| self.check(&decided).blocking_decide());
        self.until_left(&decided, [2, 100]).await;

        let ended = Subject::of("ended");
        let permit = self.admitted(&ended).await;
        hindered_here(|| drop(permit));
        self.until_left(&ended, [1, 50]).await;
        hindered(self.admitted(&ended).await.refund()).await;
        self.until_left(&ended, [1, 50]).await;
        hindered(self.admitted(&ended).await.settle_units(&[("tokens", 7)])).await;
        self.until_left(&ended, [2, 57]).await;
        let meter = self.admitted(&Subject::of("metered")).await.meter("tokens").unwrap();
        hindered_here(|| drop(meter));
        self.until_left(&Subject::of("metered"), [1, 0]).await;

        hindered(self.settled()).await;
        self.until_left(&Subject::of("attribute"), [1, settled]).await;
        hindered_here(|| self.settled_here());
        self.until_left(&Subject::of("plain"), [1, settled]).await;
        assert!(AssertUnwindSafe(self.broken()).catch_unwind().await.is_err());
        PANICS.store(false, Ordering::SeqCst);
        self.until_left(&Subject::of("broken"), [1, 50]).await;

        let paused = Subject::of("paused");
        hindered(self.admitted(&paused).await.pause(HOUR)).await;
        hindered(self.limiter.check(&self.policy, &paused).reset()).await;
        _ = self.limiter.check(&self.policy, &paused).resume().await;
        _ = self.limiter.check(&self.policy, &paused).reset().await;
        assert!(self.check(&paused).await.unwrap().is_allowed(), "it goes on");
    }
}

fn call_within(install: fn()) {
    install();
    let server = Server::start();
    Runtime::new().unwrap().block_on(async {
        // A call ends by a panic within `on_warning`, before its function has run.
        let listening = Limiter::builder().on_warning(|_| Panicking::told());
        for (builder, settled) in [(Limiter::builder(), 7), (listening, 50)] {
            // After twice the deadline, a call whose answer was not taken is given back.
            let builder = builder.deadline(Duration::from_secs(5));
            Held::new(builder.clone().build_in_memory().unwrap()).play(settled).await;
            Held::new(builder.connect_lazy(server.url()).unwrap()).play(settled).await;
            server.ask::<()>("FLUSHALL");
        }
    });
    assert!(PANICKED.load(Ordering::SeqCst) > 10, "they were told of what happened");
}

fn install_subscriber() {
    tracing::subscriber::set_global_default(Panicking).unwrap();
}

fn install_recorder() {
    metrics::set_global_recorder(Panicking).unwrap();
}

#[test]
fn a_subscriber_that_panics_loses_no_place_and_no_correction() {
    assert_ends("panicking::a_subscriber_that_panics_loses_no_place_and_no_correction", || {
        call_within(install_subscriber);
    });
}

#[test]
fn a_recorder_that_panics_loses_no_place_and_no_correction() {
    assert_ends("panicking::a_recorder_that_panics_loses_no_place_and_no_correction", || {
        call_within(install_recorder);
    });
}
