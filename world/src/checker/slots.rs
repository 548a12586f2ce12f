//! The slots of a cluster: all tallies of a subject are in one, so that its calls take one trip.

use std::collections::BTreeMap;

use super::keys::parts;
use super::violation::Violation;
use crate::history::{Deed, Entry, Event};
use crate::server::slot;
use crate::workload::Scenario;

const SLOT: &str = "the tallies of calls, units and leases of one subject are in one slot";

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut slots: BTreeMap<(&str, &str), (u16, &str)> = BTreeMap::new();
    for entry in history {
        let Event::Done { deed: Deed::Decided { keys, .. }, .. } = &entry.event else { continue };
        for key in keys {
            let Some((policy, subject)) = parts(key) else { continue };
            if !scenario.policies.iter().any(|plan| plan.name == policy && plan.has_units()) {
                continue;
            }
            let slot = slot(key.as_bytes());
            let (other, with) = *slots.entry((policy, subject)).or_insert((slot, key));
            if slot != other {
                let how = format!("{key} is in slot {slot}, and {with} in {other}");
                return Err(Violation { us: entry.us, promise: SLOT, how });
            }
        }
    }
    Ok(())
}
