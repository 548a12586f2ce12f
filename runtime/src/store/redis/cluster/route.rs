//! The way of a request through a cluster.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::member::Member;
use super::redirect::Redirect;
use super::slots::Slot;
use super::topology::{Reason, Topology};
use crate::error::{BackendError, BackendErrorKind};
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::visit::Visit;
use crate::store::redis::node::Node;

/// How many redirects are followed at once. From there on there are pauses: the nodes do not agree yet.
const HOPS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The way of a request through a cluster: from node to node, as far as these redirect it.
///
/// A redirect is a refusal, so what was refused is sent again. What may have been executed never is.
pub(crate) struct Route<'a> {
    topology: &'a Arc<Topology>,
    slot: Slot,
    until: Instant,
    step: Step,
    hops: u32,
}

/// A step on the way: the node to ask, and how.
#[derive(Clone)]
pub(crate) struct Step {
    member: Arc<Member>,
    manner: Manner,
}

/// How a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Together with other requests.
    Gathered,
    Alone(Visit),
}

impl Step {
    pub(crate) fn node(&self) -> &Node {
        &self.member.node
    }

    pub(crate) fn manner(&self) -> Manner {
        self.manner
    }

    pub(crate) fn visit(&self) -> Visit {
        match self.manner {
            Manner::Gathered => Visit::Owner,
            Manner::Alone(visit) => visit,
        }
    }
}

impl<'a> Route<'a> {
    /// Begins at the node that serves the slot.
    pub(crate) async fn to(topology: &'a Arc<Topology>, slot: Slot, until: Instant) -> Result<Self, BackendError> {
        let member = topology.owner(slot, until).await.map_err(BackendError::into_refusal)?;
        Ok(Self { topology, slot, until, step: Step { member, manner: Manner::Gathered }, hops: 0 })
    }

    /// Asks one node after the other, as far as they redirect, and returns the answer of the last.
    pub(crate) async fn ask<T, F>(mut self, ask: impl Fn(Step) -> F) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        loop {
            match ask(self.step.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.redirect(error).await?,
            }
        }
    }

    /// Goes where a node redirects to. Any other error is returned.
    async fn redirect(&mut self, error: BackendError) -> Result<(), BackendError> {
        match Redirect::of(&error, &self.step.member.host) {
            Some(Redirect::Moved(host)) => {
                self.step.member = self.topology.moved(self.slot, &host)?;
                self.step.manner = Manner::Gathered;
            }
            // It is about all keys of those that are gathered. Redis 6 even says `ASK` if a single one of them is on its way.
            Some(Redirect::Ask(_) | Redirect::TryAgain) if self.step.manner == Manner::Gathered => {
                self.step.manner = Manner::Alone(Visit::Owner);
            }
            Some(Redirect::Ask(host)) => {
                self.step.member = self.topology.importer(&host)?;
                self.step.manner = Manner::Alone(Visit::Importer);
                self.hops += 1;
                // At once: that the key is there holds for this moment.
                return self.in_time();
            }
            Some(Redirect::TryAgain) => return Err(error),
            None => {
                self.suspect(&error);
                return Err(error);
            }
        }
        self.hops += 1;
        self.pause().await
    }

    /// Asks the other nodes who serves the slots of one that does not, or that is no node of the cluster any more.
    fn suspect(&self, error: &BackendError) {
        let is_away = self.step.node().server().known_outage().is_some();
        if is_away || error.kind() == BackendErrorKind::Away {
            self.topology.refresh(Reason::Away(&self.step.member.host));
        }
    }

    /// Waits before the next of many redirects is followed.
    async fn pause(&self) -> Result<(), BackendError> {
        self.in_time()?;
        if self.hops > HOPS {
            let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.hops - HOPS - 1));
            let left = self.until.saturating_duration_since(Instant::now());
            sleep(doubled.min(LONGEST_PAUSE).min(left)).await;
        }
        self.in_time()
    }

    fn in_time(&self) -> Result<(), BackendError> {
        if Instant::now() < self.until { Ok(()) } else { Err(late().into_refusal()) }
    }
}
