//! The requests of one call, and the callers that wait for their replies.

use std::collections::BTreeMap;
use std::pin::pin;

use tokio::sync::oneshot;

use crate::call::{Call, OwnedCall, Slot, TallyKey};
use crate::error::BackendError;
use crate::policy::RuleGroup;
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::real_time::{self, TICK};
use crate::store::redis::script::run::ScriptCall;
use crate::store::redis::script::windows::is_plain;
use crate::store::redis::script::wire::Reply;
use crate::store::redis::script::{ScriptId, ScriptQuestion, unknown_shape};
use crate::store::redis::server::Server;
use crate::system::Instant;

#[derive(Debug)]
pub(crate) struct Batch {
    sent: Vec<(OwnedCall, Caller)>,
}

#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) until: Instant,
    /// `None` once the caller has its answer.
    answer: Option<oneshot::Sender<Result<Reply, BackendError>>>,
}

impl Batch {
    /// Returns the batch of one request, with room for so many.
    pub(crate) fn of(request: OwnedCall, caller: Caller, room: usize) -> Self {
        let mut sent = Vec::with_capacity(room);
        sent.push((request, caller));
        Self { sent }
    }

    pub(crate) fn push(&mut self, request: OwnedCall, caller: Caller) {
        self.sent.push((request, caller));
    }

    /// The latest deadline of its callers, at which the call ends.
    pub(crate) fn latest(&self) -> Option<Instant> {
        self.sent.iter().map(|(_, caller)| caller.until).max()
    }

    #[cfg(test)]
    pub(crate) fn requests(&self) -> impl Iterator<Item = Call<'_>> {
        self.sent.iter().map(|(request, _)| request.as_call())
    }

    /// Sends the requests, and answers each caller at its own deadline at the latest.
    pub(crate) async fn send(mut self, server: &Server) {
        let Some(latest) = self.latest() else { return };
        sort_by_kind(&mut self.sent);
        let (requests, mut callers): (Vec<_>, Vec<_>) = self.sent.into_iter().unzip();
        let requests: Vec<_> = requests.iter().map(OwnedCall::as_call).collect();
        let mut sent = pin!(server.ask_each(&requests, latest));
        let replies = loop {
            // Most often all deadlines are about the same, and the timer of the call is enough.
            let is_earlier = |until: &Instant| latest.saturating_duration_since(*until) > TICK;
            let Some(until) = next_deadline(&callers).filter(is_earlier) else { break sent.await };
            if let Some(replies) = real_time::wait_for_bounded(until, sent.as_mut()).await {
                break replies;
            }
            let now = Instant::now();
            callers.iter_mut().filter(|caller| caller.until <= now).for_each(|caller| caller.answer(Err(late())));
        };
        callers.iter_mut().zip(replies).for_each(|(caller, reply)| caller.answer(reply));
    }
}

fn next_deadline(callers: &[Caller]) -> Option<Instant> {
    callers.iter().filter(|caller| caller.answer.is_some()).map(|caller| caller.until).min()
}

/// Puts plain requests of one policy and cost next to each other, as they share their numbers then. The order does not
/// depend on their addresses in memory.
fn sort_by_kind(sent: &mut [(OwnedCall, Caller)]) {
    let are_alike = |pair: &[(OwnedCall, Caller)]| matches!(pair, [(one, _), (other, _)] if kind(one) == kind(other));
    // Most often all are of one kind.
    if sent.windows(2).all(are_alike) || !sent.iter().all(|(request, _)| is_plain(request.as_call())) {
        return;
    }
    let mut kinds = Vec::new();
    sent.sort_by_cached_key(|(request, _)| {
        let kind = kind(request);
        kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        })
    });
}

/// Returns a value that is equal for all calls of one policy and cost.
fn kind(call: &OwnedCall) -> (*const RuleGroup, u64) {
    (call.policy.groups().as_ptr(), call.options.cost)
}

impl Caller {
    pub(crate) fn new(until: Instant) -> (Self, oneshot::Receiver<Result<Reply, BackendError>>) {
        let (answer, answered) = oneshot::channel();
        (Self { until, answer: Some(answer) }, answered)
    }

    pub(crate) fn has_given_up(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Answers a caller that was too late, for which nothing is sent.
    pub(crate) fn answer_late(mut self) {
        self.answer(Err(late().into_refusal()));
    }

    /// Answers the caller, unless it has its answer. A caller that gave up receives nothing.
    pub(crate) fn answer(&mut self, answer: Result<Reply, BackendError>) {
        if let Some(waiting) = self.answer.take() {
            let _ = waiting.send(answer);
        }
    }
}

/// The requests of a batch whose keys are in the same slot or slots.
#[derive(Default)]
struct SlotGroup<'a> {
    /// Their positions among all requests.
    places: Vec<usize>,
    requests: Vec<Call<'a>>,
    keys: Vec<TallyKey>,
    /// The pauses that the script looks for: one for each request, or none.
    pauses: Vec<TallyKey>,
}

impl Server {
    /// Sends requests in one round trip, with one call of the script for each slot. Each request has an answer of its
    /// own.
    pub(crate) async fn ask_by_slot(&self, requests: &[Call<'_>], until: Instant) -> Vec<Result<Reply, BackendError>> {
        let groups = self.group(requests);
        let (calls, ids): (Vec<_>, Vec<_>) = groups.iter().map(|group| self.call(group)).unzip();
        let answers = match self.call_each(&calls, until).await {
            Ok(answers) => answers,
            Err(error) => return vec![Err(error); requests.len()],
        };
        let mut replies = vec![Err(unknown_shape()); requests.len()];
        for ((group, id), answer) in groups.iter().zip(ids).zip(answers) {
            let read = match answer.and_then(|reply| self.read(id, &reply, &group.requests)) {
                Ok(read) => read.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); group.places.len()],
            };
            for (&place, reply) in group.places.iter().zip(read) {
                if let Some(missing) = replies.get_mut(place) {
                    *missing = reply;
                }
            }
        }
        replies
    }

    /// Returns the call for the requests of a group, and the script.
    fn call(&self, group: &SlotGroup<'_>) -> (ScriptCall<'_>, ScriptId) {
        let ScriptQuestion { script, arguments, id } =
            ScriptQuestion::about(&group.requests, &self.scripts, self.now_us());
        let keys = group.keys.iter().chain(&group.pauses).copied().collect();
        (ScriptCall { script, keys, arguments }, id)
    }

    fn group<'a>(&self, requests: &[Call<'a>]) -> Vec<SlotGroup<'a>> {
        let mut groups = BTreeMap::<(Vec<Slot>, bool), SlotGroup<'a>>::new();
        for (place, request) in requests.iter().enumerate() {
            let keys: Vec<_> = self.keys(*request).collect();
            // A request in several slots gets a group of its own, so that its refusal concerns no other.
            let mut slots: Vec<_> = keys.iter().map(|key| Slot::of(key.as_str())).collect();
            slots.dedup();
            let pause = self.pause_key(*request);
            let group = groups.entry((slots, pause.is_some())).or_default();
            group.pauses.extend(pause);
            group.places.push(place);
            group.requests.push(*request);
            group.keys.extend(keys);
        }
        groups.into_values().collect()
    }
}
