//! What a partner has answered to a fleet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The answers of an hour. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    admitted: u64,
    denials: Vec<Denied>,
}

/// A denial, in microseconds of virtual time.
#[derive(Clone, Copy)]
pub(super) struct Denied {
    pub(super) process: u32,
    /// When the call was sent.
    pub(super) sent_us: u64,
    /// Until when the denial says to wait.
    pub(super) until_us: u64,
}

/// The answers of an hour, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// How many calls the partner has admitted.
    pub admitted: u64,
    /// How many it has denied.
    pub denied: u64,
    /// How often it has asked for a pause that did not overlap the one before.
    pub pauses: u64,
    /// The most denials of one process in one pause.
    pub most_of_a_process: u64,
}

impl Answers {
    pub(super) fn admitted(&self) {
        self.state().admitted += 1;
    }

    pub(super) fn denied(&self, denied: Denied) {
        self.state().denials.push(denied);
    }

    pub(super) fn answered(&self) -> Answered {
        let state = self.state();
        let mut denials = state.denials.clone();
        denials.sort_by_key(|denied| denied.sent_us);
        let (mut pauses, mut most_of_a_process, mut until_us) = (0, 0, 0);
        let mut of_pause: BTreeMap<u32, u64> = BTreeMap::new();
        for denied in &denials {
            if denied.sent_us >= until_us {
                pauses += 1;
                of_pause.clear();
            }
            until_us = until_us.max(denied.until_us);
            let of_process = of_pause.entry(denied.process).or_default();
            *of_process += 1;
            most_of_a_process = most_of_a_process.max(*of_process);
        }
        Answered { admitted: state.admitted, denied: denials.len() as u64, pauses, most_of_a_process }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_that_were_sent_before_the_end_of_a_pause_belong_to_it() {
        let answers = Answers::default();
        answers.admitted();
        for (process, sent_us, until_us) in [(1, 0, 10), (1, 9, 12), (2, 9, 10), (1, 12, 20)] {
            answers.denied(Denied { process, sent_us, until_us });
        }
        let expected = Answered { admitted: 1, denied: 4, pauses: 2, most_of_a_process: 2 };
        assert_eq!(answers.answered(), expected);
    }
}
