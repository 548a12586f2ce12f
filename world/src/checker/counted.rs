//! Calls and what servers counted: a permit was counted once while its call was decided, and nothing is counted twice.

use std::collections::BTreeMap;

use tallygate::{DecidedBy, OnOutage, RejectionKind};

use super::keys::{find, is_leases, parts, unit};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{Action, PolicyPlan, Scenario, Topology};

const ONCE: &str = "no call is counted twice";
const COUNTED: &str = "a call that Redis admits was counted while it was decided";

/// How often one call that waits may ask again although it was counted.
const ASKED_AGAIN: usize = 8;

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
    for entry in history {
        let Event::Done { deed, .. } = &entry.event else { continue };
        match deed {
            Deed::Decided { keys, costs, is_late: false, is_charged: true, verdict: Verdict::Admitted, .. } => {
                let counted = keys.iter().zip(costs).filter(|(_, cost)| **cost > 0);
                for (key, cost) in counted.filter(|(key, _)| !is_leases(key) && !is_ahead(scenario, key)) {
                    if let Some(tally) = tally(key) {
                        take(spans.entry(tally).or_default(), entry.us, *cost, key)?;
                    }
                }
            }
            // Another master has denied the call, which may ask again, also where a reset has left nothing to correct.
            Deed::Corrected { keys, used, costs, .. } if scenario.topology == Topology::Cluster => {
                let refunded = keys.iter().zip(costs).zip(used).filter(|(_, used)| **used == 0).map(|(one, _)| one);
                let (from_us, until_us) = (entry.us, u64::MAX);
                let again = |cost: &u64| Span { call: usize::MAX, cost: *cost, from_us, until_us, is_admitted: false };
                let refunded = refunded.filter(|(key, _)| is_divided(scenario, key));
                let refunded = refunded.filter_map(|(key, cost)| Some((tally(key)?, again(cost))));
                refunded.for_each(|(tally, again)| spans.entry(tally).or_default().push(again));
            }
            _ => {}
        }
    }
    let left = spans.values().flatten().find(|span| span.is_admitted);
    left.map_or(Ok(()), |span| Err(span.not_counted()))
}

/// The policy, the subject and the unit of a tally.
type Counted = (String, String, Option<&'static str>);

fn tally(key: &str) -> Option<Counted> {
    parts(key).map(|(policy, subject)| (policy.to_owned(), subject.to_owned(), unit(key)))
}

/// Whether a server counts parts, and not calls.
fn is_ahead(scenario: &Scenario, key: &str) -> bool {
    find(scenario, key).is_some_and(|(policy, _)| policy.prefetch_us.is_some())
}

/// Whether several tallies decide about a call, which may be in several slots.
fn is_divided(scenario: &Scenario, key: &str) -> bool {
    find(scenario, key).is_some_and(|(policy, _)| counts_in_parts(policy))
}

/// Whether the calls of a policy are on several tallies: one may count a call that another denies, until that is taken back.
fn counts_in_parts(policy: &PolicyPlan) -> bool {
    policy.has_net() || policy.has_leases()
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

/// The calls that may be counted, by what counts them.
fn spans(scenario: &Scenario, history: &[Entry]) -> BTreeMap<Counted, Vec<Span>> {
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
        if plan.action == Action::Peek || plan.is_administration() {
            continue;
        }
        let (until_us, answer) = ends.get(call).copied().unwrap_or((u64::MAX, None));
        let is_admitted = match answer {
            Some(Answer::Admitted(by)) => by == DecidedBy::Backend,
            _ => false,
        };
        let policy = scenario.policies.get(plan.policy).filter(|policy| policy.prefetch_us.is_none());
        let Some(policy) = policy else { continue };
        // What Redis denies, it has not counted. A limit that is closed after the reply was lost has no time to wait for.
        let is_denied = match answer {
            // What was counted is taken back if the process has been told of the pause meanwhile.
            Some(Answer::Denied { kind: RejectionKind::Paused, .. }) => false,
            Some(Answer::Denied { by: DecidedBy::Backend, retry_us: Some(_), .. }) => true,
            _ => false,
        };
        // Before a call that waits is denied, it may have been counted, and taken back as its process was told of a pause.
        let waits = matches!(plan.action, Action::Wait(_));
        if is_denied && !counts_in_parts(policy) && !(waits && policy.partner.is_some()) {
            continue;
        }
        for group in policy.groups.iter().filter(|group| plan.cost_of(group.unit) > 0) {
            let spans = spans.entry((policy.name.clone(), group.subject(plan.subject), group.unit)).or_default();
            let cost = plan.cost_of(group.unit);
            let span = |is_admitted| Span { call: *call, cost, from_us: entry.us, until_us, is_admitted };
            spans.push(span(is_admitted));
            // A call that waits asks again where the standby denies after an answer was lost, or where its process has been told
            // of a pause meanwhile.
            let asks_again = scenario.on_outage(policy) == OnOutage::Local || policy.partner.is_some();
            if waits && asks_again {
                spans.extend((0..ASKED_AGAIN).map(|_| span(false)));
            }
        }
    }
    spans
}
