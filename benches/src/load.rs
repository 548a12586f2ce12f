//! Callers, and their calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tallygate::{Limiter, Policy, Subject};
use tokio::task::JoinSet;

/// A caller of numbered subjects.
pub(crate) trait Caller: Clone + Send + Sync + 'static {
    /// Makes one call, and returns whether it was admitted.
    fn call(&self, subject: usize) -> impl Future<Output = bool> + Send;
}

/// Calls [`Limiter::check`].
#[derive(Clone)]
pub(crate) struct Checker {
    limiter: Limiter,
    policy: Policy,
}

impl Checker {
    pub(crate) async fn connect(url: &str, policy: &Policy) -> Self {
        Self::new(patient(url).await, policy)
    }

    pub(crate) fn new(limiter: Limiter, policy: &Policy) -> Self {
        Self { limiter, policy: policy.clone() }
    }
}

impl Caller for Checker {
    async fn call(&self, subject: usize) -> bool {
        let decision = self.limiter.check(&self.policy, &Subject::of(subject)).await;
        decision.expect("the server answers").is_allowed()
    }
}

/// Calls [`Limiter::check`] for several subjects that are decided together: the number, a group that it is in, and everybody.
#[derive(Clone)]
pub(crate) struct Together {
    limiter: Limiter,
    policy: Policy,
}

/// How many numbers are in one group.
const GROUP: usize = 10;

impl Together {
    /// The policy has rules on the subject of the call, and on `group` and `everybody`.
    pub(crate) async fn connect(url: &str, policy: &Policy) -> Self {
        Self { limiter: patient(url).await, policy: policy.clone() }
    }
}

impl Caller for Together {
    async fn call(&self, subject: usize) -> bool {
        let (one, group) = (Subject::of(subject), Subject::of(subject / GROUP));
        let check = self.limiter.check(&self.policy, &one);
        let decision = check.subject("group", &group).subject("everybody", &Subject::everyone()).await;
        decision.expect("the server answers").is_allowed()
    }
}

/// Connects a limiter that waits for a busy machine.
pub(crate) async fn patient(url: &str) -> Limiter {
    // Redis is measured, so no denial is cached here.
    let builder =
        Limiter::builder().deadline(std::time::Duration::from_secs(30)).denial_cache(std::time::Duration::ZERO);
    builder.connect(url).await.expect("the server answers")
}

/// The results of some calls.
pub(crate) struct Outcome {
    pub(crate) admitted: usize,
    pub(crate) seconds: f64,
}

/// Calls each of these subjects once. All callers run at once, and each makes one call at a time.
pub(crate) async fn drive<C: Caller>(callers: &[C], subjects: Arc<[usize]>) -> Outcome {
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for caller in callers {
        let caller = caller.clone();
        let (next, subjects) = (Arc::clone(&next), Arc::clone(&subjects));
        tasks.spawn(async move {
            let mut admitted = 0;
            while let Some(&subject) = subjects.get(next.fetch_add(1, Ordering::Relaxed)) {
                admitted += usize::from(caller.call(subject).await);
            }
            admitted
        });
    }
    let admitted = tasks.join_all().await.into_iter().sum();
    Outcome { admitted, seconds: started.elapsed().as_secs_f64() }
}
