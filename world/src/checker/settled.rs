//! Settlements: one changes the units that its call names, each to what the call has used of it.

use std::collections::BTreeMap;

use super::keys::{Tally, find, is_leases, tally, unit};
use super::violation::Violation;
use crate::history::{Entry, Event};
use crate::workload::{CallPlan, Scenario};

const NAMED: &str = "a settlement changes the units that it names";

/// What a server has made of the cost of a call in one tally.
struct Change {
    unit: Option<&'static str>,
    cost: u64,
    used: u64,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut recounted: BTreeMap<Tally, Vec<&CallPlan>> = BTreeMap::new();
    for plan in scenario.calls.iter().filter(|plan| plan.is_recounted()) {
        recounted.entry((plan.policy, plan.subject)).or_default().push(plan);
    }
    for entry in history {
        let Event::Done { deed, .. } = &entry.event else { continue };
        let Some(recount) = deed.recount() else { continue };
        let keys = recount.keys;
        // What was taken ahead is no call, and a part of a call that another server denies is taken back.
        let counts_calls = |key: &String| find(scenario, key).is_some_and(|(policy, _)| policy.prefetch_us.is_none());
        let Some(key) = keys.iter().find(|key| !is_leases(key) && counts_calls(key)) else { continue };
        let Some(tally) = tally(scenario, key).filter(|_| recount.used.iter().any(|used| *used > 0)) else { continue };
        let changes = keys.iter().enumerate().filter(|(_, key)| !is_leases(key)).filter_map(|(place, key)| {
            let (cost, used) = recount.change(place)?;
            // What is charged only now, and is nothing, may have been charged before.
            (!recount.is_late() || used > 0).then_some(Change { unit: unit(key), cost, used })
        });
        let changes: Vec<_> = changes.collect();
        if !recounted.get(&tally).is_some_and(|plans| plans.iter().any(|plan| is_by(plan, &changes))) {
            let how = format!("{keys:?} were changed by {recount:?}, and no call has used that");
            return Err(Violation { us: entry.us, promise: NAMED, how });
        }
    }
    Ok(())
}

/// Whether a call may have made these changes. Those of several servers are made one by one.
fn is_by(plan: &CallPlan, changes: &[Change]) -> bool {
    changes.iter().all(|Change { unit, cost, used }| {
        plan.cost_of(*unit) == *cost && (used == cost || plan.used_of(*unit) == *used)
    })
}
