//! What a behaviour is played on: a limiter, and a way to let time pass on its backend, to the microsecond.

use std::time::Duration;

use tallygate::{Decision, Denial, Limiter, Policy, Subject};

use crate::clocked::Clocked;

/// A limiter, and the clock that it goes by.
pub struct Stage {
    limiter: Limiter,
    /// Without it the clock is tokio's, paused.
    clocked: Option<Clocked>,
}

impl Stage {
    /// A limiter in memory. The test's clock has to be paused.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { limiter: Limiter::in_memory(), clocked: None }
    }

    /// A limiter in a Redis server of its own.
    pub async fn in_redis() -> Self {
        let clocked = Clocked::start();
        Self { limiter: clocked.limiter().await, clocked: Some(clocked) }
    }

    /// Returns the limiter.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Lets exactly that much time pass.
    pub async fn pass(&self, time: Duration) {
        match &self.clocked {
            None => tokio::time::advance(time).await,
            Some(clocked) => clocked.advance(time),
        }
    }

    /// Decides one call.
    pub async fn call(&self, policy: &Policy, subject: &Subject) -> Decision {
        self.limiter.check(policy, subject).await.expect("the backend answers")
    }

    /// Decides one call of that cost, and has every rule reported.
    pub async fn costly(&self, policy: &Policy, subject: &Subject, cost: u64) -> Decision {
        self.limiter.check(policy, subject).cost(cost).report().await.expect("the backend answers")
    }

    /// Decides one call, which has to be admitted.
    pub async fn admitted(&self, policy: &Policy, subject: &Subject) {
        let decision = self.call(policy, subject).await;
        assert!(decision.is_allowed(), "{decision:?}");
    }

    /// Decides one call, which has to be denied.
    pub async fn denied(&self, policy: &Policy, subject: &Subject) -> Denial {
        match self.call(policy, subject).await {
            Decision::Denied(denial) => denial,
            allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
        }
    }

    /// Decides calls at one instant until one is denied, and returns how many were admitted before.
    pub async fn room(&self, policy: &Policy, subject: &Subject) -> u64 {
        let mut admitted = 0;
        while self.call(policy, subject).await.is_allowed() {
            admitted += 1;
        }
        admitted
    }
}
