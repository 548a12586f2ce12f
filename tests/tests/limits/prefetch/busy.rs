//! A process that is busy with a subject.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::testing::ManualClock;
use tallygate::{Check, Limiter, Policy, Rule, Subject};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Longer than a test takes: keys expire by the clock of the server, which no test sets.
pub(super) const PER: Duration = Duration::from_secs(60);
pub(super) const AHEAD: Duration = Duration::from_millis(100);
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// How long what was taken is used: 2 ms less than it may be.
pub(super) const USED_FOR: Duration = Duration::from_millis(98);
pub(super) const NOT_QUITE: Duration = Duration::from_millis(97);

pub(super) const COUNT: u64 = 10_000;

pub(super) fn window() -> Policy {
    policy(Rule::sliding_window(COUNT, PER))
}

pub(super) fn policy(rule: Rule) -> Policy {
    Policy::builder("tenant").rule(rule).prefetch(AHEAD).build().unwrap()
}

pub(super) fn tenant() -> Subject {
    Subject::of("tenant")
}

/// A server whose clock the test sets, a process that is busy on it, and another one that looks.
pub(super) struct Busy {
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    pub(super) clock: ManualClock,
    pub(super) limiter: Limiter,
    pub(super) other: Limiter,
    pub(super) policy: Policy,
    /// What the calls of the process have used.
    pub(super) used: AtomicU64,
    metrics: Snapshotter,
    counted: Mutex<HashMap<(String, Vec<String>), u64>>,
    _recording: LocalRecorderGuard<'static>,
}

impl Busy {
    pub(super) async fn with(policy: Policy) -> Self {
        let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
        let (server, clock) = (Server::start(), new_clock());
        let proxy = Proxy::start(server.port()).await;
        let busy = Self {
            limiter: connected(&patient().clock(&clock), &proxy.url()).await,
            other: connected(&patient().clock(&clock), &server.url()).await,
            server,
            proxy,
            clock,
            policy,
            used: AtomicU64::new(0),
            metrics: recorder.snapshotter(),
            counted: Mutex::default(),
            _recording: metrics::set_default_local_recorder(recorder),
        };
        busy.take_ahead().await;
        busy
    }

    pub(super) async fn start() -> Self {
        Self::with(window()).await
    }

    /// Calls until a call is decided by what was taken ahead.
    pub(super) async fn take_ahead(&self) {
        until_found("a call is decided ahead", async || self.is_decided_ahead().await).await;
    }

    pub(super) fn check<'a>(&'a self, subject: &'a Subject) -> Check<'a> {
        self.limiter.check(&self.policy, subject)
    }

    /// Whether the next call is decided by what was taken ahead, and admitted.
    pub(super) async fn is_decided_ahead(&self) -> bool {
        let decision = self.check(&tenant()).await.unwrap();
        self.used.fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
        self.counted("tallygate_prefetch_decisions_total", "tenant") == 1 && decision.is_allowed()
    }

    /// How much that metric has counted since it was looked at, with such a label.
    pub(super) fn counted(&self, name: &str, label: &str) -> u64 {
        let mut counted = self.counted.lock().unwrap();
        // A snapshot forgets what it shows.
        for (key, .., value) in self.metrics.snapshot().into_vec() {
            let labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
            if let DebugValue::Counter(number) = value {
                *counted.entry((key.key().name().to_owned(), labels)).or_default() += number;
            }
        }
        let is_asked = |(own, labels): &(String, Vec<String>)| own == name && labels.iter().any(|own| own == label);
        counted.extract_if(|key, _| is_asked(key)).map(|(_, number)| number).sum()
    }

    /// What another process sees.
    pub(super) async fn remaining(&self) -> u64 {
        self.other.peek(&self.policy, &tenant()).await.unwrap().report()[0].remaining()
    }

    /// Waits until all that was taken and not used is given back.
    pub(super) async fn is_given_back(&self) {
        let used = self.used.load(Ordering::Relaxed);
        until_found("what is left is given back", async || self.remaining().await == COUNT - used).await;
    }
}
