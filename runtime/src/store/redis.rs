//! Tallies in Redis. Scripts decide calls there in one round trip.

mod batching;
mod cluster;
mod connection;
mod deployment;
#[cfg(feature = "admin")]
mod inspection;
mod multi_slot;
mod node;
mod rehearsal;
mod script;
mod server;
mod stored;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, cmd};
use futures_util::future::join_all;
use once_cell::sync::OnceCell;

use self::connection::address::Destination;
use self::connection::fault::is_cross_slot;
#[cfg(feature = "tls")]
pub use self::connection::tls::Tls;
use self::deployment::Deployment;
#[cfg(feature = "admin")]
pub(crate) use self::inspection::{
    Access, CommandPurpose, KeyScan, Permission, Sample, ScriptState, ServerFacts, ServerInfo, Times,
};
use self::node::Step;
#[cfg(feature = "admin")]
pub(crate) use self::rehearsal::{CONCURRENT_CALLS, RehearsedStep, SEVERAL_KEYS};
use self::script::work::refund_parts;
pub(crate) use self::stored::lists::{StoredDenials, StoredPolicies};
use self::stored::overrides_key;
use crate::call::{Call, CallOptions, LeaseName, ReturnedLeases, Slot, TallyId};
use crate::decision::{AdmittedAt, PauseSource, Recount};
use crate::error::{BackendError, BackendErrorKind, Error};
use crate::policy::{Policy, SubjectCost};
use crate::store::answer::{LayeredAnswer, Outcome, Readiness};
use crate::store::decider::{Decider, RemoteStore, tally_to_ban};
use crate::store::pauses::ProbeStep;
use crate::store::redis_types::{Setup, StoredText};
use crate::system::home::in_runtime;
use crate::system::home::{Driver, Side};
use crate::system::{self, Instant};

#[derive(Debug)]
pub(crate) struct Redis {
    destination: Box<Destination>,
    deployment: Deployment,
    /// The deployment with the connections that the thread of the limiter drives.
    deployment_of_thread: OnceCell<Deployment>,
    setup: Setup,
    has_decided: AtomicBool,
}

/// The most steps in which a hash is read, and the longest time for all of them.
const MOST_SCAN_STEPS: usize = 1_000;
const LONGEST_SCAN: Duration = Duration::from_secs(10);

/// A random number from 0 to 1, which spreads over time what all processes do.
pub(crate) fn random_fraction() -> f64 {
    system::random_fraction()
}

impl Redis {
    /// Returns the tallies on the server at this URL. It connects for the first decision.
    pub(crate) fn open(url: &str, setup: Setup) -> Result<Self, Error> {
        Ok(Self::new(Destination::parse(url)?, setup))
    }

    /// Opens as [`open`](Self::open) does, with settings for encrypted connections.
    #[cfg(feature = "tls")]
    pub(crate) fn open_with_tls(url: &str, tls: &Tls, setup: Setup) -> Result<Self, Error> {
        Ok(Self::new(Destination::parse(url)?.with_tls(tls)?, setup))
    }

    pub(crate) fn of_client(client: &::redis::Client, setup: Setup) -> Result<Self, Error> {
        Ok(Self::new(Destination::of_client(client)?, setup))
    }

    fn new(destination: Destination, setup: Setup) -> Self {
        let deployment = Deployment::new(destination.clone(), &setup);
        Self {
            destination: Box::new(destination),
            deployment,
            deployment_of_thread: OnceCell::new(),
            setup,
            has_decided: AtomicBool::new(false),
        }
    }

    /// The servers, with the connections of the runtime that asks.
    fn deployment(&self) -> &Deployment {
        match self.setup.driver.runtimes.side() {
            Side::Home => &self.deployment,
            Side::Thread => self.deployment_of_thread.get_or_init(|| {
                let driver = Driver { side: Side::Thread, ..self.setup.driver.clone() };
                Deployment::new((*self.destination).clone(), &Setup { driver, ..self.setup.clone() })
            }),
        }
    }

    /// How many connections were made to the server that has this key; 0 if unknown.
    fn connections(&self, key: &str) -> u64 {
        let deployments = [Some(&self.deployment), self.deployment_of_thread.get()];
        deployments.into_iter().flatten().map(|deployment| deployment.connections(key)).sum()
    }

    /// Connects, so that a wrong setup is found at start-up.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        self.until().map_err(Error::of_url)?;
        match self.deployment() {
            Deployment::Server(node) => node.server().reach(self.setup.deadline).await,
            Deployment::Cluster(cluster) => cluster.reach().await,
        }
        .map_err(Error::of_url)
    }

    /// Finds out whether the server can decide calls.
    pub(crate) async fn ping(&self) -> Result<Readiness, BackendError> {
        let until = self.until()?;
        match self.deployment() {
            Deployment::Server(node) => node.server().ping(until).await.map(|()| Readiness::COMPLETE),
            Deployment::Cluster(cluster) => cluster.ping(until).await,
        }
    }

    /// The server's time, estimated by this process.
    pub(crate) fn now_us(&self) -> u64 {
        match self.deployment() {
            Deployment::Server(node) => node.server().now_us(),
            Deployment::Cluster(cluster) => cluster.now_us(),
        }
    }

    /// Asks the server for its time. Every decision also does that. In a cluster, the node that has the overrides is
    /// asked.
    pub(crate) async fn refresh_time(&self) -> Result<(), BackendError> {
        self.ask(&overrides_key(&self.setup.prefix), self.until()?, Step::refresh_time).await
    }

    /// Returns the deadline of a call that is asked now and decided by this policy.
    ///
    /// # Errors
    ///
    /// There is no runtime for the connections to the server.
    fn until_for(&self, policy: &Policy) -> Result<Instant, BackendError> {
        until(self.deadline_of(policy))
    }

    /// Sends a command about a key that is not a tally's.
    async fn query<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> Result<T, BackendError> {
        self.ask(key, self.until()?, |step| step.query(command)).await
    }

    /// Reads the fields of a hash, about `at_once` in each step, until there are `enough`. A field may be returned
    /// twice.
    ///
    /// # Errors
    ///
    /// The server does not answer, or the hash has no end: it takes more steps, time or bytes than any hash that
    /// processes write.
    async fn scan_hash(
        &self,
        key: &str,
        at_once: usize,
        enough: usize,
        most_bytes: usize,
    ) -> Result<Vec<StoredText>, BackendError> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut cursor = 0_u64;
        let until = Instant::now() + LONGEST_SCAN;
        for _ in 0..MOST_SCAN_STEPS {
            let mut command = cmd("HSCAN");
            command.arg(key).arg(cursor).arg("COUNT").arg(at_once);
            let (next, part): (u64, Vec<_>) = self.query(key, &command).await?;
            found.extend(part.into_iter().map(StoredText::read).inspect(|stored| bytes += stored.bytes()));
            if bytes > most_bytes {
                break;
            }
            if next == 0 || found.len() >= enough {
                return Ok(found);
            }
            if Instant::now() > until {
                break;
            }
            cursor = next;
        }
        Err(BackendError::new(format!(
            "redis: `{key}` has no end, or is larger than what processes write: {} fields with {bytes} bytes were read; delete \
             it, and it is written anew",
            found.len()
        )))
    }

    /// Asks the server that has this key.
    async fn ask<T, F>(&self, key: &str, until: Instant, ask: impl Fn(Step) -> F) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        self.deployment().ask(|_| Slot::of(key), until, ask).await
    }

    /// Asks about a call. A single server is asked once about all subjects if `at_once`, else once for each subject.
    /// The nodes of a cluster, and a proxy in front of one, are asked once for each subject.
    async fn ask_subjects<'a, T, F>(
        &self,
        request: Call<'a>,
        at_once: bool,
        ask: impl Fn(Step, Call<'a>) -> F,
    ) -> Result<Vec<T>, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        let until = self.until_for(request.policy)?;
        let deployment = self.deployment();
        if let Deployment::Server(node) = deployment
            && at_once
            && (request.subjects.len() == 1 || !node.server().is_asked_by_slot())
        {
            match ask(Step::new(node, until), request).await {
                // Nothing was executed.
                Err(error) if is_cross_slot(&error) => {}
                answered => return answered.map(|answer| vec![answer]),
            }
        }
        let ask_one = |part| {
            let ask = &ask;
            deployment.ask(move |cluster| cluster.slot_of(part), until, move |step| ask(step, part))
        };
        join_all(request.parts().map(ask_one)).await.into_iter().collect()
    }

    /// Charges what a call has used of units in which it has cost nothing. Returns whether there are any.
    async fn charge_late(&self, counted: Call<'_>, recount: &Recount) -> Result<bool, BackendError> {
        let late = (0..counted.subjects.len()).map(|index| {
            let change = recount.change_of(counted, index);
            SubjectCost::Unit(change.filter(|change| change.charged == 0).map_or(0, |change| change.used))
        });
        let late: Vec<_> = late.collect();
        let options = CallOptions { cost: 0, late: true, ..CallOptions::PLAIN };
        let is_late = |cost: &SubjectCost| *cost != SubjectCost::Unit(0);
        let (Some(first), Some(last)) = (late.iter().position(is_late), late.iter().rposition(is_late)) else {
            return Ok(false);
        };
        let request = Call { costs: &late, options, ..counted }.parts_between(first, last);
        let charged = self.ask_subjects(request, true, |step, part| async move {
            if part.counts() { step.decide(part).await.map(drop) } else { Ok(()) }
        });
        let charged = charged.await.map(|_| true);
        charged.inspect_err(|_| self.setup.driver.runtimes.background.note_failed_correction())
    }

    /// Pauses a subject for this time; 0 only asks. Returns what the pause makes of a call and, if it only asks, who has said it.
    pub(crate) async fn pause(
        &self,
        policy: &Policy,
        id: TallyId<'_>,
        length_us: u64,
        source: PauseSource,
    ) -> Result<(Outcome, PauseSource), BackendError> {
        let key = id.key(&self.setup.prefix);
        let until = self.until_for(policy)?;
        self.ask(key.as_str(), until, |step| step.pause(policy, id, length_us, source)).await
    }

    /// Takes a step of a probe, by the deadline of its call if it has one. Returns what the pause has made of a call before:
    /// the place was taken if it was free.
    pub(crate) async fn probe(
        &self,
        policy: &Policy,
        id: TallyId<'_>,
        name: LeaseName,
        step: ProbeStep,
        until: Option<Instant>,
    ) -> Result<Outcome, BackendError> {
        let key = id.key(&self.setup.prefix);
        let until = until.map_or_else(|| self.until_for(policy), Ok)?;
        self.ask(key.as_str(), until, |asked| asked.probe(policy, id, name, step)).await
    }

    /// Ends the pause of a subject.
    pub(crate) async fn resume(&self, policy: &Policy, id: TallyId<'_>) -> Result<(), BackendError> {
        let key = id.key(&self.setup.prefix);
        self.ask(key.as_str(), self.until_for(policy)?, |step| step.resume(key.as_str())).await
    }

    /// Returns the deadline of an answer that is asked for now.
    ///
    /// # Errors
    ///
    /// There is no runtime for the connections to the server.
    fn until(&self) -> Result<Instant, BackendError> {
        until(self.setup.deadline)
    }
}

impl Decider for Redis {
    async fn decide(&self, request: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let now = Instant::now();
        let deadline = self.deadline_of(request.policy);
        let until = request.until().unwrap_or(now + deadline);
        if until < now {
            // Nothing was sent.
            return Err(connection::connect::late().into_refusal());
        }
        let deployment = self.deployment();
        let decided = match deployment {
            Deployment::Server(node) if !node.server().is_asked_by_slot() => node.decide(request, now, until).await,
            // Boxed, so that a call of one server does not have the state of this future.
            _ => Box::pin(deployment.decide_by_slot(request, until, deadline)).await,
        };
        let decided = match decided {
            // This first error shows that the server has slots. Nothing was executed.
            Err(error) if request.subjects.len() > 1 && is_cross_slot(&error) => {
                Box::pin(deployment.decide_by_slot(request, until, deadline)).await
            }
            decided => decided,
        };
        // Written only once, because all threads read it.
        if decided.is_ok() && !self.has_decided() {
            self.has_decided.store(true, Ordering::Relaxed);
        }
        decided.map(LayeredAnswer::from)
    }

    // A store caches no denials.
    fn note(&self, _: Call<'_>, _: Outcome, _: u64) {}

    fn forget(&self, _: Call<'_>) {}

    async fn recount(&self, counted: Call<'_>, recount: &Recount, admitted: &AdmittedAt) -> Result<bool, BackendError> {
        let Some(request) = recount.of(counted) else { return Ok(false) };
        let charged_late = self.charge_late(request, recount).await?;
        let is_paid = |index: &usize| request.cost_at(*index) > 0;
        let mut indices = 0..request.subjects.len();
        let Some(first) = indices.clone().find(is_paid) else { return Ok(charged_late) };
        // Tallies in which the call has cost nothing are not asked, so that a fault of theirs leaves the others.
        let request = request.parts_between(first, indices.rfind(is_paid).unwrap_or(first));
        // A refund that takes several calls of the script is never repeated as a whole.
        let at_once = matches!(admitted, AdmittedAt::Once(_)) && refund_parts(request).nth(1).is_none();
        let refunded = self
            .ask_subjects(request, at_once, |step, part| async move {
                let changes = part.counts() && recount.of(part).is_some();
                if changes { step.refund(part, recount, admitted.us(part.first_group())).await } else { Ok(false) }
            })
            .await
            .inspect_err(|_| self.setup.driver.runtimes.background.note_failed_correction())?;
        Ok(charged_late || refunded.contains(&true))
    }

    async fn reset(&self, request: Call<'_>) -> Result<(), BackendError> {
        self.ask_subjects(request, true, Step::reset).await.map(drop)
    }

    async fn ban(&self, request: Call<'_>, duration: Duration) -> Result<(), BackendError> {
        let (id, duration_us) = tally_to_ban(request, duration)?;
        let key = id.key(&self.setup.prefix);
        self.ask(key.as_str(), self.until()?, |step| step.ban(id, duration_us)).await
    }
}

impl RemoteStore for Redis {
    /// `None` for a cluster: each call finds out from its own nodes.
    fn known_outage(&self) -> Option<BackendErrorKind> {
        match self.deployment() {
            Deployment::Server(node) => node.server().connector.known_outage(),
            Deployment::Cluster(_) => None,
        }
    }

    fn has_decided(&self) -> bool {
        self.has_decided.load(Ordering::Relaxed)
    }

    fn have_clocks_differed(&self) -> bool {
        connection::real_time::have_clocks_differed()
    }

    fn deadline_of(&self, policy: &Policy) -> Duration {
        policy.deadline().unwrap_or(self.setup.deadline)
    }

    async fn give_back(&self, policy: &Policy, leases: &[ReturnedLeases]) -> Result<(), BackendError> {
        self.deployment().give_back(leases, self.until_for(policy)?).await
    }

    async fn renew_leases(&self, request: Call<'_>) -> Result<(), BackendError> {
        self.ask_subjects(request, true, Step::renew_leases).await.map(drop)
    }
}

fn until(deadline: Duration) -> Result<Instant, BackendError> {
    in_runtime().map(|_| Instant::now() + deadline)
}
