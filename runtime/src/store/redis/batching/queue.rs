//! The queue of requests, and the turns of those who send them.

use std::collections::VecDeque;
use std::mem;

use tokio::runtime::Id;

use super::batch::{Batch, Caller};
use crate::call::{Call, OwnedCall};
use crate::store::redis::connection::real_time::TICK;
use crate::store::redis::script::windows::is_plain;
use crate::store::redis::script::work::Work;
use crate::system::Instant;

/// The most turns at once. With two, the server decides one call while this process reads the answers to the other.
const MOST_TURNS: usize = 2;

/// Requests, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Whether a caller makes a call by itself.
    has_lone_caller: bool,
    turns: Vec<Turn>,
    /// How many turns have begun.
    begun: u64,
    /// `None` while nobody waits.
    watch: Option<Watch>,
}

/// A request that waits for the next call.
#[derive(Debug)]
pub(crate) struct Waiting {
    request: OwnedCall,
    script: ScriptId,
    work: Work,
    caller: Caller,
}

/// What a turn takes from the queue at a time.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// What is sent, by the script that decides it.
    pub(crate) batches: Vec<(ScriptId, Batch)>,
    /// Callers that were too late: nothing is sent for them.
    pub(crate) late: Vec<Caller>,
}

/// The script that decides a request: that for so many windows, or the one for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptId {
    Windows(usize),
    General,
}

/// The right to make one call after the other.
#[derive(Debug)]
struct Turn {
    id: TurnId,
    /// When its call is over at the latest. If it is not, then its runtime stands still, and the turn is lost.
    until: Instant,
}

/// The number of a turn, counted from the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnId(u64);

/// Which callers the turns answer in time.
#[derive(Debug)]
struct Watch {
    /// Where all turns run, if that is one runtime.
    runtime: Option<Id>,
    /// When all calls that are running or waited for are over at the latest.
    until: Instant,
}

/// What a request gets in the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    /// The turn to begin for it, if there is one to be had.
    pub(crate) turn: Option<TurnId>,
    /// Whether the turns answer it in time.
    pub(crate) is_watched: bool,
}

impl Queue {
    /// Lets a caller call by itself, if no other is before it.
    pub(crate) fn begin_alone(&mut self) -> bool {
        let is_alone = !self.has_lone_caller && self.turns.is_empty() && self.waiting.is_empty();
        self.has_lone_caller |= is_alone;
        is_alone
    }

    pub(crate) fn end_alone(&mut self) {
        self.has_lone_caller = false;
    }

    /// Adds a request of a caller on that runtime.
    pub(crate) fn push(&mut self, waiting: Waiting, runtime: Id, now: Instant) -> Queued {
        let until = waiting.caller.until();
        self.turns.retain(|turn| turn.until >= now);
        if self.turns.is_empty() && self.waiting.is_empty() {
            self.watch = None;
        }
        let is_watched = self.watch.get_or_insert(Watch { runtime: Some(runtime), until }).covers(runtime, until);
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

    /// Takes what may be sent at a time, the oldest first. The turn ends when nobody waits.
    pub(crate) fn take(&mut self, id: TurnId, now: Instant) -> Option<Taken> {
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

    fn next(&mut self, now: Instant) -> Taken {
        let mut taken = Taken::default();
        let mut room = Work::MOST;
        while let Some(waiting) = self.waiting.front() {
            if waiting.is_sent(now) {
                match room.checked_sub(waiting.work) {
                    Some(rest) => room = rest,
                    // The oldest request is always sent.
                    None if taken.sends_nothing() => room = Work::NONE,
                    None => break,
                }
            }
            if let Some(waiting) = self.waiting.pop_front() {
                taken.push(waiting, now);
            }
        }
        taken
    }

    /// Ends a turn whose task is gone. Without any turn, it returns all that wait: to drop them is to answer them.
    pub(crate) fn end(&mut self, id: TurnId) -> VecDeque<Waiting> {
        self.turns.retain(|turn| turn.id != id);
        if self.turns.is_empty() { mem::take(&mut self.waiting) } else { VecDeque::new() }
    }
}

impl Waiting {
    pub(crate) fn new(request: Call<'_>, caller: Caller) -> Self {
        let script = ScriptId::of(request);
        Self { script, work: script.work(request), request: OwnedCall::new(request), caller }
    }

    /// Whether anybody waits who may be answered in time.
    fn is_sent(&self, now: Instant) -> bool {
        let awaits = !self.caller.has_given_up() && !self.request.as_call().is_abandoned();
        awaits && self.caller.until() > now
    }
}

impl Taken {
    fn push(&mut self, waiting: Waiting, now: Instant) {
        let is_sent = waiting.is_sent(now);
        let Waiting { request, script, caller, .. } = waiting;
        if !is_sent {
            self.late.push(caller);
            return;
        }
        match self.batches.iter_mut().find(|(of, _)| *of == script) {
            Some((_, batch)) => batch.push(request, caller),
            None => self.batches.push((script, Batch::of(request, caller))),
        }
    }

    fn sends_nothing(&self) -> bool {
        self.batches.is_empty()
    }

    /// When the calls are over at the latest.
    fn latest(&self) -> Option<Instant> {
        self.batches.iter().filter_map(|(_, batch)| batch.latest()).max()
    }
}

impl ScriptId {
    fn of(request: Call<'_>) -> Self {
        if is_plain(request) { Self::Windows(request.policy.rules().len()) } else { Self::General }
    }

    /// The work that the request causes there.
    fn work(self, request: Call<'_>) -> Work {
        match self {
            Self::Windows(_) => Work::of_plain(request),
            Self::General => Work::of(request),
        }
    }
}

impl Watch {
    /// Whether calls on one runtime that are over at the latest when those before are answer this one in time too.
    fn covers(&mut self, runtime: Id, until: Instant) -> bool {
        if self.runtime != Some(runtime) {
            self.runtime = None;
        }
        let is_patient = self.until.saturating_duration_since(until) <= TICK;
        self.until = self.until.max(until);
        is_patient && self.runtime.is_some()
    }
}

#[cfg(test)]
mod tests;
