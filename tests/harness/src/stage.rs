//! The stage of a behaviour test: a limiter, and a way to let time pass on its backend, to the microsecond.

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use tallygate::testing::ManualClock;
use tallygate::{Decision, Denial, Limiter, Policy, Subject};
use tokio::time::Instant;

use crate::clocked::new_clock;
use crate::cluster::Cluster;
use crate::clustered::Clustered;
use crate::sentinels::Sentinels;
use crate::server::{Server, away, connected, patient};

/// A limiter and its clock.
pub struct Stage {
    limiter: Limiter,
    /// `None` means tokio's clock, paused.
    clock: Option<ManualClock>,
    started: Instant,
    /// The URL of the servers and the prefix in them, for another process.
    place: Option<(String, String)>,
    /// The servers, which end with the stage.
    _servers: Option<Box<dyn Any>>,
}

impl Stage {
    /// A limiter in memory. The test's clock has to be paused.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { limiter: Limiter::in_memory(), clock: None, started: Instant::now(), place: None, _servers: None }
    }

    /// A limiter in a Redis server of its own.
    pub async fn in_redis() -> Self {
        let server = Server::start();
        Self::on(&server.url(), server).await
    }

    /// A limiter whose server is away, so that this process decides.
    #[must_use]
    pub fn in_standby() -> Self {
        let clock = new_clock();
        let limiter = away(|builder| builder.clock(&clock));
        Self { limiter, clock: Some(clock), started: Instant::now(), place: None, _servers: None }
    }

    /// A limiter in a server that three sentinels watch.
    pub async fn in_sentinels() -> Self {
        let sentinels = Sentinels::shared();
        Self::on(&sentinels.url(), sentinels).await
    }

    /// A limiter in a cluster of three masters.
    pub async fn in_cluster() -> Self {
        let cluster = Cluster::shared();
        Self::on(&cluster.url(), cluster).await
    }

    /// A limiter in a server behind a proxy that stands for several shards.
    pub async fn in_shards() -> Self {
        let server = Server::start();
        let proxy = Clustered::start(server.port()).await;
        Self::on(&proxy.url(), (server, proxy)).await
    }

    /// Returns a limiter with a prefix of its own, as some stages share their servers.
    async fn on(url: &str, servers: impl Any) -> Self {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        let clock = new_clock();
        let prefix = format!("stage-{}", STAGES.fetch_add(1, Ordering::Relaxed));
        let limiter = connected(&patient().prefix(prefix.clone()).clock(&clock), url).await;
        let place = Some((url.to_owned(), prefix));
        Self { limiter, clock: Some(clock), started: Instant::now(), place, _servers: Some(Box::new(servers)) }
    }

    /// Returns a limiter as another process has it, in the same servers and by the same clock.
    ///
    /// # Panics
    ///
    /// The stage has no servers.
    pub async fn another(&self) -> Limiter {
        let (Some((url, prefix)), Some(clock)) = (&self.place, &self.clock) else {
            panic!("what is in memory has one process")
        };
        connected(&patient().prefix(prefix.clone()).clock(clock), url).await
    }

    /// Returns the limiter.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Lets exactly that much time pass.
    pub async fn pass(&self, time: Duration) {
        match &self.clock {
            None => tokio::time::advance(time).await,
            Some(clock) => clock.advance(time),
        }
    }

    /// Returns the time that has passed since some beginning, by the clock of the limiter.
    #[must_use]
    pub fn now(&self) -> Duration {
        match &self.clock {
            None => self.started.elapsed(),
            Some(clock) => clock.now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    /// Decides one call.
    pub async fn call(&self, policy: &Policy, subject: &Subject) -> Decision {
        self.limiter.check(policy, subject).await.expect("the backend answers")
    }

    /// Decides one call of that cost, with a report on every rule.
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
