//! Which slots the nodes of a cluster serve, as one of them reports.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Value, cmd};

use super::slots::{MOST_NODES, SlotRange};
use crate::error::BackendError;
use crate::store::redis::connection::address::ShortList;
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::fault::asked_in_vain;
use crate::store::redis::node::ClusterNode;
use crate::store::redis::script::run::NodeRole;
use crate::system::{Instant, JoinSet, timeout};

/// How long to wait for the answer of a node before the next one is asked, too.
const HEDGE: Duration = Duration::from_millis(30);

/// Asks one node after the other, without waiting long for any, and returns the first answer that can be used.
///
/// # Errors
///
/// No answer can be used. The error is a mistake in the set-up, if a node has reported one. `patience` is the time for
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
        let hedge = candidates.next().map(|member| asked.spawn(ask(member, patience))).map(|_| HEDGE);
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

/// Asks a node which slots the nodes serve.
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
