//! The calls of a trace.

use std::time::SystemTime;

use super::error::TraceError;
use crate::subject::Subject;

/// One call of a trace, with its time, its subjects and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    at: SystemTime,
    subject: Subject,
    /// The other subjects that the rules count, by their labels.
    others: Vec<(Box<str>, Subject)>,
    cost: u64,
    line: Option<u64>,
}

impl Call {
    /// Returns a call of cost 1. Its time is in whole microseconds; the rest is cut off.
    #[must_use]
    pub fn new(at: SystemTime, subject: Subject) -> Self {
        Self { at, subject, others: Vec::new(), cost: 1, line: None }
    }

    /// Sets the cost of the call. A call of cost 0 is decided by what is counted already, and counts nothing.
    #[must_use]
    pub fn with_cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Adds another subject of the call, by the label that [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) gave
    /// it.
    #[must_use]
    pub fn with_subject(mut self, label: &str, subject: Subject) -> Self {
        self.others.push((label.into(), subject));
        self
    }

    /// Sets the line of the text that has the call.
    pub(super) fn with_line(self, line: u64) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Returns when the call was made.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.at
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

    /// Returns the line of the text that has the call, counted from 1, if it was read from text.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    pub(super) fn others(&self) -> &[(Box<str>, Subject)] {
        &self.others
    }
}

/// Decides the calls of a trace in their order. `on_mistake` chooses whether to stop at a mistake.
pub(super) fn decide_all(
    trace: impl IntoIterator<Item = Result<Call, TraceError>>,
    mut on_mistake: impl FnMut(TraceError) -> Result<(), TraceError>,
    mut decide: impl FnMut(&Call) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    for call in trace {
        if let Err(mistake) = call.and_then(|call| decide(&call)) {
            on_mistake(mistake)?;
        }
    }
    Ok(())
}
