//! The queue of requests, and the turns that send them.

use std::collections::VecDeque;
use std::mem;

use super::batch::{Batch, Caller};
use crate::call::{Call, OwnedCall};
use crate::store::redis::connection::real_time::TICK;
use crate::store::redis::script::ScriptId;
use crate::store::redis::script::work::Work;
use crate::system::Instant;

/// The most turns at once. With two, the server decides one call while this process reads the answers to another.
const MOST_TURNS: usize = 2;

/// Requests, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<WaitingRequest>,
    /// Whether a caller is sending a request alone.
    has_lone_caller: bool,
    turns: Vec<Turn>,
    /// How many turns have begun.
    begun: u64,
    /// The latest deadline of all requests that wait or are sent; `None` while there are none.
    latest: Option<Instant>,
}

/// A request that waits to be sent.
#[derive(Debug)]
pub(crate) struct WaitingRequest {
    request: OwnedCall,
    script: ScriptId,
    work: Work,
    caller: Caller,
}

#[derive(Debug, Default)]
pub(crate) struct TurnStep {
    /// The requests to send, by the script that decides them.
    pub(crate) batches: Vec<(ScriptId, Batch)>,
    /// Callers that were too late. Nothing is sent for them.
    pub(crate) late: Vec<Caller>,
}

/// The right to make calls, one after the other.
#[derive(Debug)]
struct Turn {
    id: TurnId,
    /// The deadline of its call. If the call takes longer, the turn is lost, because its runtime stands still.
    until: Instant,
}

/// The number of a turn, counted from the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnId(u64);

/// What happens to a request in the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    /// The turn to begin, if another one is allowed.
    pub(crate) turn: Option<TurnId>,
    /// Whether the turns answer the request in time.
    pub(crate) is_watched: bool,
}

impl Queue {
    /// Lets a caller send its request alone, if there is no other request. Returns whether it may.
    pub(crate) fn begin_alone(&mut self) -> bool {
        let is_alone = !self.has_lone_caller && self.turns.is_empty() && self.waiting.is_empty();
        self.has_lone_caller |= is_alone;
        is_alone
    }

    pub(crate) fn end_alone(&mut self) {
        self.has_lone_caller = false;
    }

    pub(crate) fn push(&mut self, waiting: WaitingRequest, now: Instant) -> Queued {
        let until = waiting.caller.until;
        self.turns.retain(|turn| turn.until >= now);
        if self.turns.is_empty() && self.waiting.is_empty() {
            self.latest = None;
        }
        // The turns answer a caller in time if no request before it has a later deadline.
        let latest = self.latest.map_or(until, |latest| latest.max(until));
        let is_watched = latest.saturating_duration_since(until) <= TICK;
        self.latest = Some(latest);
        self.waiting.push_back(waiting);
        Queued { turn: self.begin(until), is_watched }
    }

    fn begin(&mut self, until: Instant) -> Option<TurnId> {
        if self.turns.len() >= MOST_TURNS {
            return None;
        }
        self.begun += 1;
        let id = TurnId(self.begun);
        self.turns.push(Turn { id, until });
        Some(id)
    }

    /// Takes what may be sent in one step, the oldest first. If nobody waits, the turn ends.
    pub(crate) fn take(&mut self, id: TurnId, now: Instant) -> Option<TurnStep> {
        let index = self.turns.iter().position(|turn| turn.id == id)?;
        if self.waiting.is_empty() {
            self.turns.swap_remove(index);
            return None;
        }
        let taken = self.next(now);
        if let Some(turn) = self.turns.get_mut(index) {
            turn.until = taken.latest().unwrap_or(now);
        }
        Some(taken)
    }

    fn next(&mut self, now: Instant) -> TurnStep {
        let mut taken = TurnStep::default();
        let fitting = self.fitting(now);
        for waiting in self.waiting.drain(..fitting) {
            taken.push(waiting, fitting, now);
        }
        taken
    }

    /// How many requests are taken in one step. The oldest one that is sent always fits, however large it is.
    fn fitting(&self, now: Instant) -> usize {
        let mut room = Some(Work::MOST);
        let mut sends_nothing = true;
        let fitting = self.waiting.iter().take_while(|waiting| {
            if !waiting.is_sent(now) {
                return true;
            }
            room = room.and_then(|room| room.checked_sub(waiting.work));
            mem::take(&mut sends_nothing) || room.is_some()
        });
        fitting.count()
    }

    /// Ends a turn whose task is gone. Returns all waiting requests if it was the last turn: on drop, they answer their
    /// callers.
    pub(crate) fn end(&mut self, id: TurnId) -> VecDeque<WaitingRequest> {
        self.turns.retain(|turn| turn.id != id);
        // An empty queue keeps its memory for the next requests.
        if self.turns.is_empty() && !self.waiting.is_empty() { mem::take(&mut self.waiting) } else { VecDeque::new() }
    }
}

impl WaitingRequest {
    pub(crate) fn new(request: Call<'_>, caller: Caller) -> Self {
        let script = ScriptId::of(&[request]);
        Self { script, work: script.work(request), request: OwnedCall::new(request), caller }
    }

    /// Whether the caller waits and can be answered in time.
    fn is_sent(&self, now: Instant) -> bool {
        let awaits = !self.caller.has_given_up() && !self.request.as_call().is_abandoned();
        awaits && self.caller.until > now
    }
}

impl TurnStep {
    /// Takes one of so many requests.
    fn push(&mut self, waiting: WaitingRequest, of: usize, now: Instant) {
        let is_sent = waiting.is_sent(now);
        let WaitingRequest { request, script, caller, .. } = waiting;
        if !is_sent {
            self.late.push(caller);
            return;
        }
        match self.batches.iter_mut().find(|(of, _)| *of == script) {
            Some((_, batch)) => batch.push(request, caller),
            None => self.batches.push((script, Batch::of(request, caller, of))),
        }
    }

    fn latest(&self) -> Option<Instant> {
        self.batches.iter().filter_map(|(_, batch)| batch.latest()).max()
    }
}

#[cfg(test)]
mod tests;
