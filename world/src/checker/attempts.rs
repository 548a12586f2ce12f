//! A process makes at most ten attempts per second to one address. Only the first of a limiter is made at once.

use std::collections::BTreeMap;

use super::calls;
use super::violation::Violation;
use crate::history::{Entry, Event};
use crate::net::{Attempt, Party};
use crate::workload::{Scenario, Topology};

const TEN: &str = "a process makes at most ten attempts per second to one address";
const MOST: usize = 10;

pub(super) fn check(scenario: &Scenario, history: &[Entry], attempts: &[Attempt]) -> Result<(), Violation> {
    if let Some(violation) = calls::unanswered(history) {
        return Err(violation);
    }
    // Looking for a server asks the sentinels and the nodes of a cluster, too.
    let factor = if scenario.topology == Topology::Server { 1 } else { 3 };
    let killed: Vec<(Party, u64)> = history.iter().filter_map(killed).collect();
    let mut times: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for Attempt { from, address, us } in attempts {
        // A process that was started again has attempts of its own.
        let started = killed.iter().filter(|(party, killed_us)| party == from && killed_us <= us).count();
        let times = times.entry((from, started, address)).or_default();
        times.push(*us);
        let most = factor * (MOST + 1);
        let Some(before) = times.len().checked_sub(most + 1).and_then(|index| times.get(index)) else { continue };
        // The clock of the process may be faster by a thousandth.
        if us - before < 999_000 {
            let how = format!("{from:?} connected to {address:?} {} times within a second", most + 1);
            return Err(Violation { us: *us, promise: TEN, how });
        }
    }
    Ok(())
}

fn killed(entry: &Entry) -> Option<(Party, u64)> {
    let Event::Killed { process } = entry.event else { return None };
    Some((Party::Process(u32::try_from(process).ok()?), entry.us))
}
