//! What happened in a world: every call with its times and its answer, what the servers decided, and the faults.

mod deed;
mod recount;
mod resp;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tallygate::{BackendErrorKind, DecidedBy, Denial, RejectionKind, UnderWay};

pub use self::deed::{Deed, Verdict, deeds};
use crate::engine;
use crate::workload::CallPlan;

/// The history of one world. Clones share it.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Vec<Entry>>>);

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When, in microseconds of virtual time.
    pub us: u64,
    /// What it was.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A process began a call.
    Called {
        /// The number of the call.
        call: usize,
        /// What it is.
        plan: CallPlan,
        /// The clock of its process, since the world began.
        local_us: u64,
    },
    /// A call was answered.
    Answered {
        /// The number of the call.
        call: usize,
        /// The clock of its process.
        local_us: u64,
        /// How long its process was paused meanwhile.
        paused_us: u64,
        /// The answer.
        answer: Answer,
    },
    /// The partner to whom an admitted call was sent has answered.
    Heard {
        /// The number of the call.
        call: usize,
        /// The clock of its process.
        local_us: u64,
        /// How long the answer says to wait, in microseconds; `None` if it depends on who reads it.
        said_us: Option<u64>,
        /// How long to wait was read in it, in microseconds, if at all.
        heard_us: Option<u64>,
    },
    /// The caller had no use for the answer any more.
    Dropped {
        /// The number of the call.
        call: usize,
    },
    /// A permit was dropped, so a concurrent call is over.
    Ended {
        /// The number of the call.
        call: usize,
    },
    /// A server has done something.
    Done {
        /// The number of the server.
        server: u32,
        /// 0, or the line of its own that it writes since another server has taken its place.
        branch: u32,
        /// What its clock would show had nobody set it.
        steady_us: u64,
        /// What it did.
        deed: Deed,
    },
    /// The sentinels, or the nodes of a cluster, begin to name a server in place of another one.
    Named {
        /// The number of the server.
        server: u32,
    },
    /// Servers may have lost what they had counted.
    Lost {
        /// How.
        how: String,
    },
    /// Something else has written to these tallies, which are none any more.
    Forged {
        /// Their keys.
        keys: Vec<String>,
    },
    /// A script has run for longer than any may.
    Overrun {
        /// The number of the server.
        server: u32,
    },
    /// A fault began or ended.
    Fault {
        /// Which one.
        what: String,
    },
    /// A process was killed.
    Killed {
        /// Its number.
        process: usize,
    },
    /// All faults are over, and all calls are answered.
    Quiet,
    /// What a process sees of a limit when all is over.
    Final {
        /// What is wrong with it, if anything.
        fault: Option<String>,
    },
}

/// What a caller got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A permit.
    Admitted(DecidedBy),
    /// A denial.
    Denied {
        /// Who denied.
        by: DecidedBy,
        /// Why.
        kind: RejectionKind,
        /// How long to wait, in microseconds.
        retry_us: Option<u64>,
    },
    /// An error.
    Failed(BackendErrorKind),
    /// What was asked was done.
    Done,
    /// The limiter is drained, and this is left.
    Drained(UnderWay),
}

impl Answer {
    pub(crate) fn denied(denial: &Denial) -> Self {
        let retry_us = denial.retry_after().and_then(|retry| u64::try_from(retry.as_micros()).ok());
        let kind = denial.kind();
        let kind = if kind == RejectionKind::Unavailable { RejectionKind::Limited } else { kind };
        Self::Denied { by: denial.decided_by(), kind, retry_us }
    }
}

impl History {
    /// Notes that something happens now.
    pub fn note(&self, event: Event) {
        let us = engine::now_us();
        self.entries().push(Entry { us, event });
    }

    /// Returns all entries, and forgets them.
    #[must_use]
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.entries())
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
