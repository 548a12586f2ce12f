//! Shortens what a failing world plays, while it breaks the same promise.

use super::{Failure, scenario_of};
use crate::topology::Plant;
use crate::workload::Scenario;

/// How many shorter worlds are tried at most.
const MOST_TRIES: usize = 400;

/// Returns the shortest failure that was found.
#[must_use]
pub fn shorten(failure: Box<Failure>, plant: &Plant) -> Box<Failure> {
    let mut search = Search { best: failure, plant, tries: 0 };
    search.drop_parts(|scenario| scenario.faults.len(), |scenario, from, to| drop(scenario.faults.drain(from..to)));
    search.drop_parts(|scenario| scenario.calls.len(), |scenario, from, to| drop(scenario.calls.drain(from..to)));
    search.drop_parts(|scenario| scenario.faults.len(), |scenario, from, to| drop(scenario.faults.drain(from..to)));
    search.best
}

struct Search<'p> {
    best: Box<Failure>,
    plant: &'p Plant,
    tries: usize,
}

impl Search<'_> {
    /// Leaves out parts of a list: first large ones, then ever smaller ones.
    fn drop_parts(&mut self, length: impl Fn(&Scenario) -> usize, remove: impl Fn(&mut Scenario, usize, usize)) {
        let mut part = length(&self.best.scenario);
        while part > 0 {
            let mut from = 0;
            while from < length(&self.best.scenario) && self.tries < MOST_TRIES {
                let mut shorter = self.best.scenario.clone();
                remove(&mut shorter, from, (from + part).min(length(&self.best.scenario)));
                if !self.fails(&shorter) {
                    from += part;
                }
            }
            part /= 2;
        }
    }

    fn fails(&mut self, scenario: &Scenario) -> bool {
        self.tries += 1;
        match scenario_of(scenario, self.plant) {
            Err(failure) if failure.violation.promise == self.best.violation.promise => {
                self.best = failure;
                true
            }
            _ => false,
        }
    }
}
