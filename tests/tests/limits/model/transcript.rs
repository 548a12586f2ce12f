//! What happened in a sequence, shown when it fails.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tallygate::Rule;
use tallygate_harness::clocked::START_US;
use tallygate_harness::model::{Answer, Call, Subjects, Ticket, Used};

use crate::model::policies::Version;

/// How many of the last acts a failure shows.
const SHOWN: usize = 60;

/// What happened in a sequence.
pub(crate) struct Transcript {
    versions: Vec<Version>,
    acts: VecDeque<(u64, Act)>,
}

/// One thing that a caller did.
pub(crate) enum Act {
    /// With the number of its version, and what the model answers.
    Call(usize, Call, Answer),
    Refund(Ticket, bool),
    End(Ticket),
    RefundOn(Ticket, usize, bool),
    Settle(Ticket, Used, bool),
    Reset(Subjects, [usize; 3]),
    Ban(usize, Duration),
    Override(Option<usize>, Option<Vec<Rule>>),
}

impl Transcript {
    pub(crate) fn new(versions: &[Version]) -> Self {
        Self { versions: versions.to_vec(), acts: VecDeque::new() }
    }

    pub(crate) fn note(&mut self, now_us: u64, act: Act) {
        if self.acts.len() == SHOWN {
            self.acts.pop_front();
        }
        self.acts.push_back((now_us, act));
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the policy's versions are")?;
        for Version { policy, subjects, .. } in &self.versions {
            writeln!(f, "{:#?} on {subjects:?}, {:?}", policy.rules(), policy.ban())?;
        }
        for (now_us, act) in &self.acts {
            writeln!(f, "at {:+} µs: {act}", i128::from(*now_us) - i128::from(START_US))?;
        }
        Ok(())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(version, Call { subjects, costs, report, peek, .. }, answer) => {
                write!(f, "{subjects:?}: version {version}, {costs:?}, report {report}, peek {peek}: {answer:?}")
            }
            Self::Settle(ticket, used, found) => write!(f, "{ticket} settled for {used:?}: {found}"),
            Self::RefundOn(ticket, subject, found) => write!(f, "{ticket} refunded on {subject}: {found}"),
            Self::End(ticket) => write!(f, "{ticket} is over"),
            Self::Refund(ticket, found) => write!(f, "{ticket} refunded: {found}"),
            Self::Reset(which, subjects) => write!(f, "reset of {which:?} of {subjects:?}"),
            Self::Ban(subject, duration) => write!(f, "ban of {subject} for {duration:?}"),
            Self::Override(subject, rules) => write!(f, "override of {subject:?} by {rules:?}"),
        }
    }
}
