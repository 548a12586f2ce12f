//! The calls of a trace, and its mistakes.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::{Duration, SystemTime};

use tallygate_rules::CALLS;

use crate::subject::Subject;

/// One call of a trace, with its time, its subjects and its costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceCall {
    time: SystemTime,
    subject: Subject,
    /// The other subjects that the rules count, by their labels.
    pub(super) others: Vec<(Box<str>, Subject)>,
    cost: u64,
    /// The costs in other units than calls.
    pub(super) units: Vec<(Box<str>, u64)>,
    pause: Option<Duration>,
    line: Option<u64>,
}

impl TraceCall {
    /// Returns a call of cost 1. Its time is in whole microseconds; the rest is cut off.
    #[must_use]
    pub fn new(time: SystemTime, subject: Subject) -> Self {
        Self { time, subject, others: Vec::new(), cost: 1, units: Vec::new(), pause: None, line: None }
    }

    /// Sets the cost of the call. A call of cost 0 is decided by what is counted already, and counts nothing.
    #[must_use]
    pub fn with_cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Sets what the call costs in a unit, like `tokens`. `"calls"` names the [cost](Self::with_cost) in calls.
    ///
    /// A call that names no cost in a unit is charged nothing of it, as what it has used is known later, and is denied once
    /// nothing is left. A call that costs 0 is admitted even then.
    #[must_use]
    pub fn with_cost_of(mut self, unit: &str, cost: u64) -> Self {
        if unit == CALLS {
            return self.with_cost(cost);
        }
        self.units.retain(|(known, _)| **known != *unit);
        self.units.push((unit.into(), cost));
        self
    }

    /// Adds another subject of the call, by the label that [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) gave
    /// it.
    #[must_use]
    pub fn with_subject(mut self, label: &str, subject: Subject) -> Self {
        self.others.push((label.into(), subject));
        self
    }

    /// Sets for how long the other side has asked to pause in its answer to the call. If the call is admitted, the subject that the
    /// policy lets be [paused](crate::PolicyBuilder::pausable) is closed from the time of the call on; the first call after that
    /// is tried alone, and opens it unless it has a pause, too.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause: Some(pause).filter(|pause| !pause.is_zero()), ..self }
    }

    pub(super) fn with_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Returns when the call was made.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        self.time
    }

    /// Returns the main subject.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the cost of the call.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns what the call costs in a unit; `None` if it names no cost in it.
    #[must_use]
    pub fn cost_of(&self, unit: &str) -> Option<u64> {
        let of_unit = self.units.iter().find(|(known, _)| **known == *unit).map(|(_, cost)| *cost);
        if unit == CALLS { Some(self.cost) } else { of_unit }
    }

    /// Returns for how long the other side has asked to pause in its answer; `None` if it has not.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// Returns the line of the text that has the call, counted from 1, if it was read from text.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }
}

/// Decides the calls of a trace in their order. `on_mistake` chooses whether to stop at a mistake.
pub(super) fn decide_all(
    trace: impl IntoIterator<Item = Result<TraceCall, TraceError>>,
    mut on_mistake: impl FnMut(TraceError) -> Result<(), TraceError>,
    mut decide: impl FnMut(&TraceCall) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    for call in trace {
        if let Err(mistake) = call.and_then(|call| decide(&call)) {
            on_mistake(mistake)?;
        }
    }
    Ok(())
}

/// A mistake in a trace: where it is, and the remedy.
///
/// The text names no subject.
pub struct TraceError {
    kind: TraceErrorKind,
    place: TracePlace,
    text: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of a [`TraceError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceErrorKind {
    /// The trace cannot be read: the reader failed. The trace ends there.
    Read,
    /// The first line of a text has unknown columns or lacks one. The trace ends there.
    Header,
    /// A line of a text is not a call.
    Line,
    /// A call is before 1981 or after 2244.
    Time,
    /// A call is earlier than the one before it.
    Order,
    /// A call lacks a subject that the policy counts, or has one that the policy does not know.
    Subject,
    /// A call has a cost in a unit that no rule counts.
    Unit,
    /// A call has a pause, and the policy cannot be paused.
    Pause,
}

/// A place in a trace, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TracePlace {
    pub(super) line: Option<u64>,
    pub(super) call: Option<u64>,
}

impl TraceError {
    pub(super) fn new(kind: TraceErrorKind, place: TracePlace, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, place, text: text.into(), source: None }
    }

    pub(super) fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }

    /// Returns what the error is about.
    #[must_use]
    pub fn kind(&self) -> TraceErrorKind {
        self.kind
    }

    /// Returns the line of the text, counted from 1, if the trace was read from text.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.place.line
    }

    /// Returns the number of the call in its simulation, counted from 1, if the call could be read. Calls that the
    /// simulation refused count, too.
    #[must_use]
    pub fn call(&self) -> Option<u64> {
        self.place.call
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.place.line, self.place.call) {
            (Some(line), Some(call)) => write!(f, "line {line}, call {call}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            (None, Some(call)) => write!(f, "call {call}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.text)
    }
}

tallygate_rules::__debug_by_display!(TraceError);

impl StdError for TraceError {
    /// Returns the error of the reader or of the policy that caused this one, if any.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
