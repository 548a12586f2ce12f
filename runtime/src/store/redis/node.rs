//! The questions to one server: together with other requests, or in calls of their own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::redis::{Cmd, FromRedisValue};
use tallygate_lua as lua;

use crate::call::{Call, LeaseName, ReturnedLeases, TallyId};
use crate::decision::{PauseSource, Recount};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::answer::{Answer, Outcome};
use crate::store::pauses::ProbeStep;
use crate::store::redis::batching::Batcher;
use crate::store::redis::connection::address::Host;
use crate::store::redis::script::pack::{self, lease_name};
use crate::store::redis::script::run::{NodeRole, Script, ScriptKeys};
use crate::store::redis::script::wire::{self, Reply};
use crate::store::redis::script::work::refund_parts;
use crate::store::redis::script::{Scripts, unknown_shape};
use crate::store::redis::server::Server;
use crate::system::Instant;

/// A server, and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Node {
    server: Arc<Server>,
    batcher: Arc<Batcher>,
}

/// A node of a cluster.
pub(super) struct ClusterNode {
    pub(super) host: Host,
    pub(super) node: Arc<Node>,
    /// Whether slots were moving to this node when the nodes were asked last. It may not serve any slot yet.
    pub(super) is_importer: AtomicBool,
}

/// One step of a request: the node to ask, and how. A request to a single server takes one step. In a cluster, each
/// redirect leads to another step.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) node: Arc<Node>,
    pub(super) manner: Manner,
    pub(super) until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Together with other requests.
    Gathered,
    Alone(NodeRole),
}

impl Node {
    pub(super) fn new(server: Server) -> Arc<Self> {
        let server = Arc::new(server);
        Arc::new(Self { batcher: Batcher::new(Arc::clone(&server)), server })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Decides a request, together with others that came at the same time.
    pub(super) async fn decide(&self, request: Call<'_>, now: Instant, until: Instant) -> Result<Answer, BackendError> {
        if self.server.connector.known_outage().is_some()
            // Boxed because it is rare: other calls do not have its state.
            && let Some(outage) = Box::pin(self.server.connector.outage()).await
        {
            return Err(outage);
        }
        match self.batcher.ask(request, now, until).await? {
            Reply::Answer(answer) => Ok(answer),
            // Nothing was charged. Boxed because it is rare: other calls do not have its state.
            Reply::AskAgain | Reply::Unreadable => Box::pin(self.decide_alone(request, until, NodeRole::Owner)).await,
        }
    }

    /// Decides a request that cannot be decided together with others, or not by the estimate of the server's time.
    async fn decide_alone(&self, request: Call<'_>, until: Instant, role: NodeRole) -> Result<Answer, BackendError> {
        // The first answer brings the server's time, so the second request has the right ticks. If the clock was set
        // back, each call forgets the future entries of at least one subject.
        for _ in 0..=request.subjects.len() {
            match self.server.ask(&[request], until, role).await?.pop() {
                Some(Reply::Answer(answer)) => return Ok(answer),
                Some(Reply::Unreadable) => return Err(no_tally(request.policy)),
                Some(Reply::AskAgain) => {}
                None => return Err(unknown_shape()),
            }
        }
        Err(clock_moved())
    }
}

impl Step {
    pub(super) fn new(node: &Arc<Node>, until: Instant) -> Self {
        Self { node: Arc::clone(node), manner: Manner::Gathered, until }
    }

    pub(super) async fn decide(self, request: Call<'_>) -> Result<Answer, BackendError> {
        match self.manner {
            Manner::Gathered => self.node.decide(request, Instant::now(), self.until).await,
            Manner::Alone(role) => self.node.decide_alone(request, self.until, role).await,
        }
    }

    /// See [`Decider::recount`](crate::store::Decider::recount).
    pub(super) async fn refund(
        self,
        request: Call<'_>,
        recount: &Recount,
        admitted_us: u64,
    ) -> Result<bool, BackendError> {
        let mut is_refunded = false;
        // Sent one after the other, so that the server serves others in between.
        for part in refund_parts(request) {
            is_refunded |= self.refund_part(part, recount, admitted_us).await?;
        }
        Ok(is_refunded)
    }

    async fn refund_part(&self, part: Call<'_>, recount: &Recount, admitted_us: u64) -> Result<bool, BackendError> {
        let server = self.node.server();
        // The first answer brings the server's time, so the second request has the right ticks.
        for _ in 0..2 {
            let arguments = pack::refund(part, server.now_us(), admitted_us, recount);
            let keys = ScriptKeys::Tallies(&server.setup.prefix, &part);
            let reply = server.run(&server.scripts.refund, keys, &arguments, self.until, self.role()).await?;
            let values = wire::integers(&reply).ok_or_else(unknown_shape)?;
            server.learn_time(&values);
            match values[..] {
                [_, lua::ASK_AGAIN] => {}
                [_, given] => return Ok(given > 0),
                _ => return Err(unknown_shape()),
            }
        }
        Err(clock_moved())
    }

    pub(super) async fn renew_leases(self, request: Call<'_>) -> Result<(), BackendError> {
        let server = self.node.server();
        let arguments = pack::renewal(request);
        let keys = ScriptKeys::Tallies(&server.setup.prefix, &request);
        server.run(&server.scripts.lease, keys, &arguments, self.until, self.role()).await.map(drop)
    }

    /// Gives leases of one subject back. A command does it, because a script that the server does not know yet would run
    /// after the next question.
    pub(super) async fn give_back(self, leases: &ReturnedLeases) -> Result<(), BackendError> {
        self.query::<i64>(&giving_back(leases)).await.map(drop)
    }

    /// Bans a subject for this time; 0 ends its ban.
    pub(super) async fn ban(self, id: TallyId<'_>, duration_us: u64) -> Result<(), BackendError> {
        let server = self.node.server();
        let arguments = pack::ban(id.group, duration_us);
        let key = ScriptKeys::One(&server.setup.prefix, id);
        server.run(&server.scripts.ban, key, &arguments, self.until, self.role()).await.map(drop)
    }

    /// Pauses the subject of a pause for this time; 0 only asks. Returns what the pause makes of a call and, if it only asks, who
    /// has said it.
    pub(super) async fn pause(
        self,
        policy: &Policy,
        id: TallyId<'_>,
        length_us: u64,
        source: PauseSource,
    ) -> Result<(Outcome, PauseSource), BackendError> {
        let arguments = pack::pause(length_us, wire::longest_pause_us(policy), source);
        self.run_on_pause(|scripts| &scripts.pause, policy, id, &arguments).await
    }

    /// Takes a step of a probe. Returns what the pause has made of a call before.
    pub(super) async fn probe(
        self,
        policy: &Policy,
        id: TallyId<'_>,
        name: LeaseName,
        step: ProbeStep,
    ) -> Result<Outcome, BackendError> {
        Ok(self.run_on_pause(|scripts| &scripts.probe, policy, id, &pack::probe(name, step)).await?.0)
    }

    async fn run_on_pause(
        self,
        script: fn(&Scripts) -> &Script,
        policy: &Policy,
        id: TallyId<'_>,
        arguments: &[Vec<u8>],
    ) -> Result<(Outcome, PauseSource), BackendError> {
        let server = self.node.server();
        let key = ScriptKeys::One(&server.setup.prefix, id);
        let reply = server.run(script(&server.scripts), key, arguments, self.until, self.role()).await?;
        let (numbers, source) = reply.split_at_checked(2 * lua::INTEGER_BYTES).ok_or_else(unknown_shape)?;
        let values = wire::integers(numbers).ok_or_else(unknown_shape)?;
        server.learn_time(&values);
        match values[..] {
            [_, left] => Ok((wire::pause_outcome(policy, left), PauseSource::read(source))),
            _ => Err(unknown_shape()),
        }
    }

    /// Ends the pause of a subject.
    pub(super) async fn resume(self, key: &str) -> Result<(), BackendError> {
        self.query::<i64>(::redis::cmd("UNLINK").arg(key)).await.map(drop)
    }

    /// Removes the tallies of the call's subjects.
    pub(super) async fn reset(self, request: Call<'_>) -> Result<(), BackendError> {
        let mut command = ::redis::cmd("UNLINK");
        for key in self.node.server().keys(request) {
            command.arg(key.as_str());
        }
        self.query::<i64>(&command).await.map(drop)
    }

    /// Sends a command that calls no script.
    pub(super) async fn query<T: FromRedisValue>(self, command: &Cmd) -> Result<T, BackendError> {
        self.node.server().query(command, self.until, self.role()).await
    }

    /// Finds out whether the node can decide calls, by keys that begin with `key`.
    pub(super) async fn rehearse(self, key: &str) -> Result<(), BackendError> {
        self.node.server().rehearse(key, self.until, self.role()).await
    }

    pub(super) async fn refresh_time(self) -> Result<(), BackendError> {
        self.node.server().refresh_time(self.until).await
    }

    fn role(&self) -> NodeRole {
        match self.manner {
            Manner::Gathered => NodeRole::Owner,
            Manner::Alone(role) => role,
        }
    }
}

fn no_tally(policy: &Policy) -> BackendError {
    let name = policy.name();
    let or = if policy.pause_group().is_some() { ", or resume it" } else { "" };
    BackendError::new(format!(
        "redis: a key of policy `{name}` holds something that is no tally; reset its subject, as by `tallygate reset`{or}"
    ))
}

fn giving_back(leases: &ReturnedLeases) -> Cmd {
    let mut command = ::redis::cmd("ZREM");
    command.arg(leases.key.as_str());
    for name in &leases.names {
        command.arg(&lease_name(Some(*name))[..]);
    }
    command
}

fn clock_moved() -> BackendError {
    BackendError::new("redis: the server's clock is not where it was a moment ago")
}
