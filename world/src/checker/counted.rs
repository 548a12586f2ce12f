//! Calls and what servers counted: a permit was counted once while its call was decided, and nothing is counted twice.

use std::collections::BTreeMap;

use tallygate::DecidedBy;

use super::tallies::{is_leases, parts};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{Action, Scenario};

const ONCE: &str = "no call is counted twice";
const COUNTED: &str = "a call that Redis admits was counted while it was decided";

/// A call on one tally.
struct Span {
    call: usize,
    cost: u64,
    from_us: u64,
    until_us: u64,
    is_admitted: bool,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut spans = spans(scenario, history);
    let counted = history.iter().filter_map(|entry| match &entry.event {
        Event::Done {
            deed: Deed::Decided { keys, cost, is_charged: true, verdict: Verdict::Admitted, .. }, ..
        } => Some((entry.us, *cost, keys)),
        _ => None,
    });
    for (us, cost, keys) in counted {
        for key in keys.iter().filter(|key| !is_leases(key)) {
            let Some(tally) = parts(key).map(|(policy, subject)| (policy.to_owned(), subject.to_owned())) else {
                continue;
            };
            take(spans.entry(tally).or_default(), us, cost, key)?;
        }
    }
    let left = spans.values().flatten().find(|span| span.is_admitted);
    left.map_or(Ok(()), |span| Err(span.not_counted()))
}

/// Finds the call of that cost that was counted then: first one that was admitted, the one that ends first.
fn take(spans: &mut Vec<Span>, us: u64, cost: u64, key: &str) -> Result<(), Violation> {
    if let Some(late) = spans.iter().find(|span| span.is_admitted && span.until_us < us) {
        return Err(late.not_counted());
    }
    let open = spans.iter().enumerate().filter(|(_, span)| span.from_us <= us && span.cost == cost);
    let first = open.min_by_key(|(_, span)| (!span.is_admitted, span.until_us));
    let Some((index, _)) = first else {
        return Err(Violation { us, promise: ONCE, how: format!("{key} was counted more often than it was called") });
    };
    spans.remove(index);
    Ok(())
}

impl Span {
    fn not_counted(&self) -> Violation {
        let how = format!("call {} was admitted, and no server had counted it", self.call);
        Violation { us: self.until_us, promise: COUNTED, how }
    }
}

/// The calls that may be counted, by policy and subject.
fn spans(scenario: &Scenario, history: &[Entry]) -> BTreeMap<(String, String), Vec<Span>> {
    let mut ends = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Answered { call, answer, .. } => _ = ends.insert(*call, (entry.us, Some(*answer))),
            Event::Dropped { call } => _ = ends.insert(*call, (entry.us, None)),
            _ => {}
        }
    }
    let mut spans: BTreeMap<_, Vec<Span>> = BTreeMap::new();
    for entry in history {
        let Event::Called { call, plan, .. } = &entry.event else { continue };
        if plan.action == Action::Peek || plan.is_administration() || plan.cost == 0 {
            continue;
        }
        let (until_us, answer) = ends.get(call).copied().unwrap_or((u64::MAX, None));
        let is_admitted = match answer {
            Some(Answer::Admitted(by)) => by == DecidedBy::Backend,
            _ => false,
        };
        let Some(policy) = scenario.policies.get(plan.policy) else { continue };
        // What Redis denies, it has not counted. Of several subjects, one may have been counted and taken back.
        let is_denied = matches!(answer, Some(Answer::Denied { by: DecidedBy::Backend, .. }));
        if is_denied && policy.groups.len() == 1 {
            continue;
        }
        for group in &policy.groups {
            let span = Span { call: *call, cost: plan.cost, from_us: entry.us, until_us, is_admitted };
            spans.entry((policy.name.clone(), group.subject(plan.subject))).or_default().push(span);
        }
    }
    spans
}
