//! Many callers at once.

use std::sync::Arc;

use tallygate::{Limiter, Policy, Subject};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// How many tasks call at once.
pub const TASKS: usize = 64;

/// Lets [`TASKS`] tasks make `calls` calls each, all at once, and returns how many calls were admitted.
///
/// # Panics
///
/// When the backend does not answer.
pub async fn admitted_at_once(limiter: &Limiter, policy: &Policy, subject: &Subject, calls: usize) -> u64 {
    let together = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
        let together = Arc::clone(&together);
        tasks.spawn(async move {
            together.wait().await;
            let mut admitted = 0;
            for _ in 0..calls {
                let decision = limiter.check(&policy, &subject).await.expect("the backend answers");
                admitted += u64::from(decision.is_allowed());
            }
            admitted
        });
    }
    tasks.join_all().await.into_iter().sum()
}
