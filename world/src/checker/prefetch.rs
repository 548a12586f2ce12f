//! Calls that are taken ahead: callers get no more in any window than the count, and no more than servers have counted.

use std::collections::BTreeMap;
use std::time::Duration;

use tallygate::{Algorithm, DecidedBy, Role, Rule};

use super::keys::{is_leases, parts, unit};
use super::tallies::reach;
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{Action, CallPlan, Fault, Group, PolicyPlan, Scenario};

const WINDOW: &str = "callers get no more in any window than the count, however much is taken ahead";
const COUNTED: &str = "no more is used than was taken";
const GIVEN_BACK: &str = "what was taken ahead and is not used is given back, also when a limiter is drained";

/// The numbers of a policy, of one of its groups, and of the subject.
pub(super) type Place = (usize, usize, usize);

/// A call that was admitted: it ran at some time between.
struct Span {
    from_us: u64,
    until_us: u64,
    cost: u64,
}

/// What callers and servers know of one subject.
#[derive(Default)]
struct Subject {
    admitted: Vec<Span>,
    used: u64,
    /// The most that is counted of calls that were not admitted for good.
    doubtful: u64,
    counted: u64,
    /// When state may have been lost, or was removed.
    lost: Vec<u64>,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut begun: BTreeMap<usize, (&CallPlan, u64)> = BTreeMap::new();
    let mut subjects: BTreeMap<Place, Subject> = BTreeMap::new();
    let mut lost = Vec::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => _ = begun.insert(*call, (plan, entry.us)),
            Event::Answered { call, answer: Answer::Admitted(DecidedBy::Backend), .. } => {
                let Some((plan, from_us)) = begun.remove(call) else { continue };
                doubt(scenario, &mut subjects, Some(plan).filter(|plan| plan.is_recounted()));
                for (group, cost) in costs(scenario, plan) {
                    let subject = subjects.entry((plan.policy, group, plan.subject)).or_default();
                    subject.used += cost;
                    subject.admitted.push(Span { from_us, until_us: entry.us, cost });
                    subject.check_counted(entry.us)?;
                }
            }
            Event::Answered { call, answer, .. } => {
                let plan = begun.remove(call).map(|(plan, _)| plan);
                // What Redis denies, it has not counted.
                let is_denied = matches!(answer, Answer::Denied { by: DecidedBy::Backend, .. });
                doubt(scenario, &mut subjects, plan.filter(|_| !is_denied));
            }
            Event::Dropped { call } => doubt(scenario, &mut subjects, begun.remove(call).map(|(plan, _)| plan)),
            Event::Quiet => check_given_back(scenario, history, &subjects, entry.us)?,
            Event::Lost { .. } | Event::Named { .. } => lost.push(entry.us),
            Event::Done { deed, .. } => note(scenario, &mut subjects, deed, entry.us),
            _ => {}
        }
    }
    // Where the clock of a server is set forward, it drops calls that are still in use.
    if scenario.faults.iter().any(|plan| matches!(plan.fault, Fault::ClockStep(_))) {
        return Ok(());
    }
    subjects.iter_mut().try_for_each(|((policy, group, _), subject)| {
        subject.lost.extend(&lost);
        subject.check_windows(&scenario.policies[*policy], *group)
    })
}

/// The groups that count a call as what it costs, whatever becomes of it, where calls are taken ahead, and these costs.
fn costs(scenario: &Scenario, plan: &CallPlan) -> Vec<(usize, u64)> {
    let is_counted = !plan.is_recounted() && plan.action != Action::Peek && !plan.is_administration();
    let policy = scenario.policies.get(plan.policy).filter(|policy| is_counted && policy.prefetch_us.is_some());
    let groups = policy.map(|policy| policy.groups.as_slice()).unwrap_or_default();
    groups.iter().map(|group| plan.cost_of(group.unit)).enumerate().collect()
}

/// Notes a call that servers may have counted, although no caller has its permit, or other than it costs.
fn doubt(scenario: &Scenario, subjects: &mut BTreeMap<Place, Subject>, plan: Option<&CallPlan>) {
    let Some(plan) = plan.filter(|plan| !plan.is_administration()) else { return };
    let Some(policy) = scenario.policies.get(plan.policy) else { return };
    for (number, group) in policy.groups.iter().enumerate() {
        let subject = subjects.entry((plan.policy, number, plan.subject)).or_default();
        subject.doubtful += plan.cost_of(group.unit).max(plan.used_of(group.unit));
    }
}

/// Checks that nothing stays taken where nothing fails and no process ends before its limiter is drained.
fn check_given_back(
    scenario: &Scenario,
    history: &[Entry],
    subjects: &BTreeMap<Place, Subject>,
    us: u64,
) -> Result<(), Violation> {
    let is_left = |entry: &Entry| matches!(entry.event, Event::Answered { answer: Answer::Drained(left), .. } if !left.is_nothing());
    if !scenario.is_calm() || history.iter().any(is_left) {
        return Ok(());
    }
    let trip_us = scenario.link.delay_us + scenario.link.jitter_us;
    subjects.iter().try_for_each(|((number, group, _), subject)| {
        let policy = &scenario.policies[*number];
        let has_time = policy.deadline_us.unwrap_or(scenario.settings.deadline_us) > 30 * trip_us;
        let slides = |rule: &Rule| matches!(rule.algorithm(), Algorithm::SlidingWindow { .. });
        let is_known = has_time && !policy.may_close && policy.groups[*group].rules.iter().all(slides);
        if !is_known || !subject.lost.is_empty() || subject.counted <= subject.used + subject.doubtful {
            return Ok(());
        }
        let Subject { used, doubtful, counted, .. } = subject;
        let how =
            format!("{} has counted {counted} in the end, and callers got {used} to {}", policy.name, used + doubtful);
        Err(Violation { us, promise: GIVEN_BACK, how })
    })
}

fn note(scenario: &Scenario, subjects: &mut BTreeMap<Place, Subject>, deed: &Deed, us: u64) {
    match deed {
        Deed::Decided { keys, costs, is_charged: true, verdict: Verdict::Admitted, .. } => {
            for (key, cost) in keys.iter().zip(costs) {
                if let Some(place) = place(scenario, key) {
                    subjects.entry(place).or_default().counted += cost;
                }
            }
        }
        Deed::Corrected { keys, costs, used, changed: 1.., .. } => {
            for ((key, cost), used) in keys.iter().zip(costs).zip(used) {
                let Some(place) = place(scenario, key) else { continue };
                let subject = subjects.entry(place).or_default();
                subject.counted = (subject.counted + used).saturating_sub(*cost);
            }
        }
        Deed::Removed { keys } => {
            for place in keys.iter().filter_map(|key| place(scenario, key)) {
                subjects.entry(place).or_default().lost.push(us);
            }
        }
        _ => {}
    }
}

/// What a key counts, if it belongs to a policy whose calls are taken ahead.
pub(super) fn place(scenario: &Scenario, key: &str) -> Option<Place> {
    let (policy, subject) = parts(key).filter(|_| !is_leases(key))?;
    let policy = scenario.policies.iter().position(|plan| plan.name == policy && plan.prefetch_us.is_some())?;
    let number = subject.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()?;
    let is_meant = |group: &Group| group.unit == unit(key) && group.subject(number) == subject;
    let group = scenario.policies[policy].groups.iter().position(is_meant)?;
    Some((policy, group, number))
}

impl Subject {
    fn check_counted(&self, us: u64) -> Result<(), Violation> {
        if self.used <= self.counted {
            return Ok(());
        }
        let how = format!("callers got {}, and servers have counted {}", self.used, self.counted);
        Err(Violation { us, promise: COUNTED, how })
    }

    fn check_windows(&self, policy: &PolicyPlan, group: usize) -> Result<(), Violation> {
        let ahead_us = policy.prefetch_us.unwrap_or_default();
        let rules = policy.groups[group].rules.iter().filter(|rule| rule.role() == Role::Limit);
        rules.filter_map(|rule| Some((rule, most(rule, ahead_us)?))).try_for_each(|(rule, (per_us, most))| {
            self.admitted.iter().try_for_each(|first| self.check_window(rule, first.from_us, per_us, ahead_us, most))
        })
    }

    /// Checks the window from there on, by the calls that certainly ran within it.
    fn check_window(&self, rule: &Rule, from_us: u64, per_us: u64, ahead_us: u64, most: u64) -> Result<(), Violation> {
        let until_us = from_us + per_us;
        let within = self.admitted.iter().filter(|span| span.from_us >= from_us && span.until_us < until_us);
        let sum: u64 = within.map(|span| span.cost).sum();
        let lost = self.lost.iter().filter(|us| **us + ahead_us >= from_us && **us <= until_us).count() as u64;
        if sum <= (1 + lost) * most {
            return Ok(());
        }
        let how = format!("callers got {sum} within {per_us} µs under `{rule}`, with {lost} losses");
        Err(Violation { us: until_us, promise: WINDOW, how })
    }
}

/// A window, and how much callers get within it at most.
fn most(rule: &Rule, ahead_us: u64) -> Option<(u64, u64)> {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } => Some((u64::try_from(per.as_micros()).ok()?, rule.count())),
        // By the ticks of a schedule, the time of the server counts.
        Algorithm::Cron { .. } => None,
        Algorithm::SlidingCounter { .. } => {
            let stored = rule.ahead(Duration::from_micros(ahead_us))?;
            reach(&stored).map(|reach| (reach.per_us - ahead_us, reach.most))
        }
        _ => reach(rule).map(|reach| (reach.per_us, reach.most)),
    }
}
