//! Refreshes of the map of slots: when the nodes of a cluster are asked, how, and for how long their answer is enough.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Value, cmd};
use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::slots::{MOST_NODES, SlotRange};
use crate::error::BackendError;
use crate::store::redis::connection::address::{Host, ShortList};
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::fault::asked_in_vain;
use crate::store::redis::connection::real_time;
use crate::store::redis::node::ClusterNode;
use crate::store::redis::script::run::NodeRole;
use crate::system::{Instant, JoinSet, timeout};

/// For how long after the start of a refresh calls wait for its outcome. The nodes may have to be connected to first.
const MOMENT: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
pub(crate) enum Reason<'a> {
    /// The map is not known yet.
    Start,
    /// A slot was not where the map said.
    Moved,
    /// This node does not answer, or does not serve.
    Away(&'a Host),
}

/// The outcome of a refresh. If its runtime is gone, the channel is closed without an outcome.
type RefreshOutcome = Option<Result<(), BackendError>>;

#[derive(Clone)]
pub(crate) struct Refresh {
    began: Instant,
    outcome: watch::Receiver<RefreshOutcome>,
}

impl Refresh {
    /// Begins now. Also returns the sender of the outcome.
    pub(super) fn begin(now: Instant) -> (watch::Sender<RefreshOutcome>, Self) {
        let (done, outcome) = watch::channel(None);
        (done, Self { began: now, outcome })
    }

    /// Whether the refresh began so recently that calls wait for its outcome.
    pub(super) fn has_just_begun(&self) -> bool {
        self.began.elapsed() < MOMENT
    }

    /// Waits for the outcome; `None` at the deadline.
    pub(super) async fn outcome(mut self, until: Instant) -> RefreshOutcome {
        let asked = async { self.outcome.wait_for(Option::is_some).await.ok()?.clone() };
        let gone = || Err(BackendError::away("redis: the runtime was shut down"));
        Some(real_time::wait_for_bounded(until, asked).await?.unwrap_or_else(gone))
    }

    /// Whether no other refresh is needed, because this one is running or began a moment ago.
    pub(super) fn is_enough(&self, reason: Reason<'_>, now: Instant) -> bool {
        let is_done = self.outcome.borrow().is_some();
        if !is_done && self.outcome.has_changed().is_err() {
            // The runtime of the refresh is gone.
            return false;
        }
        let pause = match reason {
            // The redirect has already told the caller which node to ask.
            Reason::Moved => Duration::from_secs(1),
            Reason::Start | Reason::Away(_) => Duration::from_millis(100),
        };
        !is_done || now.saturating_duration_since(self.began) < pause
    }
}

/// How long to wait for the answer of a node before the next one is also asked.
const HEDGE: Duration = Duration::from_millis(30);

/// Asks one node after the other, without waiting long for any, and returns the first usable answer.
///
/// # Errors
///
/// No answer is usable. If a node has reported a mistake in the setup, that is the error. `patience` is the time for
/// each node.
pub(crate) async fn first_answer(
    candidates: Vec<Arc<ClusterNode>>,
    patience: Duration,
) -> Result<Vec<SlotRange>, BackendError> {
    let hosts: Vec<_> = candidates.iter().map(|member| member.host.clone()).collect();
    let mut candidates = candidates.into_iter();
    let mut asked = JoinSet::new();
    let mut error = late();
    loop {
        let hedge = candidates.next().map(|member| asked.spawn(ask(member, patience).boxed())).map(|_| HEDGE);
        match timeout(hedge.unwrap_or(patience), asked.join_next()).await {
            Ok(None) => {
                return Err(asked_in_vain(
                    format_args!("no node of the cluster answers, of {}", ShortList(&hosts)),
                    error,
                ));
            }
            Ok(Some(Ok(Ok(ranges)))) => return Ok(ranges),
            Ok(Some(Ok(Err(another)))) => error = error.or_mistake(another),
            Ok(Some(Err(_))) | Err(_) => {}
        }
    }
}

/// Asks a node which slots each node serves.
async fn ask(member: Arc<ClusterNode>, patience: Duration) -> Result<Vec<SlotRange>, BackendError> {
    let mut command = cmd("CLUSTER");
    command.arg("SLOTS");
    let until = Instant::now() + patience;
    let answered = member.node.server().query(&command, until, NodeRole::Owner).await;
    let answer: Value = answered.map_err(BackendError::into_known)?;
    let host = &member.host;
    match SlotRange::read_all(&answer, &member.host) {
        Some(ranges) if ranges.is_empty() => {
            Err(BackendError::away(format!("redis: the node {host} knows of no slot")))
        }
        Some(ranges) => Ok(ranges),
        None => Err(BackendError::new(format!(
            "redis: the answer of {host} to `CLUSTER SLOTS` is none of a cluster, which has {MOST_NODES} nodes at most"
        ))),
    }
}
