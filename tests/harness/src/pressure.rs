//! Callers that call one after the other, while a test does something to the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tallygate::{BackendError, Limiter, Policy, Rule, Subject};
use tokio::task::JoinSet;

use crate::until::until;

/// So many calls that none is denied.
const COUNT: u64 = 1_000_000;
/// Between two calls of a caller, so that callers leave the processor to servers and to other tests.
const PAUSE: Duration = Duration::from_millis(1);

/// Callers, each with a subject of its own.
pub struct Pressure {
    shared: Arc<Shared>,
    callers: JoinSet<Called>,
}

struct Shared {
    is_over: AtomicBool,
    admitted: AtomicU64,
    failed: AtomicU64,
}

/// What became of the calls of one subject.
pub struct Called {
    /// The subject.
    pub subject: Subject,
    /// How many calls were admitted.
    pub admitted: u64,
    /// The calls that were not decided: when that was known, and why.
    pub failed: Vec<(Instant, BackendError)>,
    /// When a call was admitted first after one had failed.
    pub recovered: Option<Instant>,
    /// The longest that a call took.
    pub slowest: Duration,
}

/// Returns a policy that admits all calls of a [`Pressure`].
#[must_use]
pub fn policy() -> Policy {
    let rule = Rule::sliding_window(COUNT, Duration::from_secs(3_600));
    Policy::builder("pressure").rule(rule).build().expect("the rule is sound")
}

/// Returns how many hits of a subject count.
pub async fn counted(limiter: &Limiter, subject: &Subject) -> u64 {
    let decision = limiter.peek(&policy(), subject).await.expect("the servers answer");
    COUNT - decision.report()[0].remaining()
}

/// Asserts that what was admitted is stored, and nothing twice: what failed may be stored. Returns how much of that is.
///
/// # Panics
///
/// That does not hold.
pub async fn assert_stored(limiter: &Limiter, called: &[Called]) -> u64 {
    let mut wrong = Vec::new();
    let mut stored_of_failed = 0;
    for called in called {
        let stored = counted(limiter, &called.subject).await;
        let most = called.admitted + called.failed.len() as u64;
        if !(called.admitted..=most).contains(&stored) {
            wrong.push(format!("{stored} of {} to {most} by {}", called.admitted, called.subject));
        }
        stored_of_failed += stored.saturating_sub(called.admitted);
    }
    assert!(wrong.is_empty(), "stored is something else than what was admitted: {wrong:?}");
    stored_of_failed
}

/// Asserts that exactly what was admitted is stored, where no call may have failed.
///
/// # Panics
///
/// That does not hold.
pub async fn assert_all_stored(limiter: &Limiter, called: &[Called]) {
    let failed: Vec<_> = called.iter().flat_map(|called| &called.failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_stored(limiter, called).await;
}

impl Pressure {
    /// Begins to call.
    #[must_use]
    pub fn start(limiter: &Limiter, subjects: impl IntoIterator<Item = Subject>) -> Self {
        let shared = Shared { is_over: AtomicBool::new(false), admitted: AtomicU64::new(0), failed: AtomicU64::new(0) };
        let shared = Arc::new(shared);
        let mut callers = JoinSet::new();
        for subject in subjects {
            callers.spawn(call(limiter.clone(), subject, Arc::clone(&shared)));
        }
        Self { shared, callers }
    }

    /// Returns how many calls were admitted so far.
    #[must_use]
    pub fn admitted(&self) -> u64 {
        self.shared.admitted.load(Ordering::Relaxed)
    }

    /// Returns how many calls have failed so far.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Returns how many calls were admitted or have failed so far.
    #[must_use]
    pub fn called(&self) -> u64 {
        self.admitted() + self.failed()
    }

    /// Waits until that many more calls were admitted.
    pub async fn admit(&self, calls: u64) {
        let goal = self.admitted() + calls;
        until("more calls are admitted", || self.admitted() >= goal).await;
    }

    /// Waits until so many calls were admitted that none can have failed for long.
    pub async fn recover(&self) {
        loop {
            let failed = self.failed();
            self.admit(1_000).await;
            if self.failed() == failed {
                return;
            }
        }
    }

    /// Ends the calls, and returns what became of them.
    pub async fn end(self) -> Vec<Called> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.callers.join_all().await
    }
}

async fn call(limiter: Limiter, subject: Subject, shared: Arc<Shared>) -> Called {
    let policy = policy();
    let mut called = Called { subject, admitted: 0, failed: Vec::new(), recovered: None, slowest: Duration::ZERO };
    while !shared.is_over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let decision = limiter.check(&policy, &called.subject).await;
        let now = Instant::now();
        called.slowest = called.slowest.max(now - asked);
        match decision {
            Ok(decision) => {
                assert!(decision.is_allowed(), "{decision:?}");
                called.admitted += 1;
                shared.admitted.fetch_add(1, Ordering::Relaxed);
                if !called.failed.is_empty() {
                    called.recovered.get_or_insert(now);
                }
            }
            Err(error) => {
                called.failed.push((now, error));
                called.recovered = None;
                shared.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    called
}
