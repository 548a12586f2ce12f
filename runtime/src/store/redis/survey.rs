//! Which slots the nodes of a cluster serve, as one of them says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::{Value, cmd};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::address::Host;
use super::member::Member;
use super::slots::SlotRange;
use super::visit::Visit;
use crate::error::{BackendError, BackendErrorKind};

/// How long a node may take to say what it knows until the next one is asked too.
const HEDGE: Duration = Duration::from_millis(30);

/// The longest that a node may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks one node after the other, without waiting long for any, and returns the first answer that can be used.
///
/// # Errors
///
/// No answer can be used. If one of them shows a mistake, that is why.
pub(super) async fn first_answer(candidates: Vec<Arc<Member>>) -> Result<Vec<SlotRange>, BackendError> {
    let hosts: Vec<_> = candidates.iter().map(|member| format!("{}:{}", member.host.name, member.host.port)).collect();
    let mut candidates = candidates.into_iter();
    let mut asked = JoinSet::new();
    let silence = format!("redis: no node of the cluster answers, of {}", hosts.join(", "));
    let mut error = None;
    loop {
        let hedge = candidates.next().map(|member| asked.spawn(ask(member))).map(|_| HEDGE);
        match timeout(hedge.unwrap_or(PATIENCE), asked.join_next()).await {
            Ok(None) => return Err(why(silence, error)),
            Ok(Some(Ok(Ok(ranges)))) => return Ok(ranges),
            Ok(Some(Ok(Err(another)))) => {
                error = Some(match error {
                    Some(error) => BackendError::or_mistake(error, another),
                    None => another,
                });
            }
            Ok(Some(Err(_))) | Err(_) => {}
        }
    }
}

/// Why there is no answer: a mistake as it is, and else that nobody answers, and why the last one does not.
fn why(silence: String, error: Option<BackendError>) -> BackendError {
    match error {
        Some(error) if error.kind() == BackendErrorKind::Away => {
            BackendError::with_source(BackendErrorKind::Away, format!("{silence}: {error}"), error)
        }
        Some(error) => error,
        None => BackendError::away(silence),
    }
}

/// Asks a node which slots the nodes serve.
async fn ask(member: Arc<Member>) -> Result<Vec<SlotRange>, BackendError> {
    let mut command = cmd("CLUSTER");
    command.arg("SLOTS");
    let until = Instant::now() + PATIENCE;
    let answered = member.node.server().query(&command, until, Visit::Owner).await;
    let answer: Value = answered.map_err(BackendError::into_known)?;
    let Host { name, port } = &member.host;
    match SlotRange::read_all(&answer, &member.host) {
        Some(ranges) if ranges.is_empty() => {
            Err(BackendError::away(format!("redis: the node {name}:{port} knows of no slot")))
        }
        Some(ranges) => Ok(ranges),
        None => Err(BackendError::new(format!("redis: the answer of {name}:{port} to `CLUSTER SLOTS` is none"))),
    }
}
