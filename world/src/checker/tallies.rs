//! Each tally, by the times of its server: no window holds more than its rule admits, and no call is denied that fits.

use std::collections::BTreeMap;

use tallygate::{Algorithm, Role, Rule};

use super::keys::{find, is_leases};
use super::violation::Violation;
use crate::history::{Deed, Entry, Event, Verdict};
use crate::workload::{Fault, Scenario};

const WINDOW: &str = "any window without a loss of state admits at most the count";
const OTHER: &str = "any window admits at most what the algorithm allows";
const BACK: &str = "a call is refunded or settled once";
const EXACT: &str = "a call is denied if and only if it does not fit, and exactly for as long as it does not";

/// A call that a tally counts.
struct Hit {
    us: u64,
    /// The time of the server, had nobody set its clock.
    steady_us: u64,
    at_us: u64,
    cost: u64,
    /// What it counts as, since it was refunded or settled.
    live: u64,
    is_corrected: bool,
    /// Whether it was paid afterwards, even beyond the count.
    is_late: bool,
}

/// What a tally has counted.
#[derive(Default)]
struct Tally {
    hits: Vec<Hit>,
    /// When it lost what it had counted.
    lost: Vec<u64>,
    /// How much was given back, and when.
    given_back: Vec<(u64, u64)>,
    /// Whether it is not known what a correction has changed, or a ban is at work.
    is_vague: bool,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let lost = losses(history);
    let is_steady = !scenario.faults.iter().any(|plan| matches!(plan.fault, Fault::ClockStep(_)));
    let mut tallies: BTreeMap<(u32, &str), Tally> = BTreeMap::new();
    for entry in history {
        let Event::Done { branch, steady_us, deed, .. } = &entry.event else { continue };
        match deed {
            Deed::Decided { keys, costs, needs, is_late, is_charged, verdict, at_us, wait_us, .. } => {
                let mut asked = Vec::new();
                for ((key, cost), need) in keys.iter().zip(costs).zip(needs).filter(|((key, _), _)| !is_leases(key)) {
                    let Some((policy, rules)) = find(scenario, key) else { continue };
                    let fresh = || Tally { lost: lost.clone(), ..Tally::default() };
                    let tally = tallies.entry((*branch, key)).or_insert_with(fresh);
                    // A server that was replaced goes on from what it had counted before.
                    tally.is_vague |= *branch > 0
                        || policy.ban.is_some()
                        || policy.has_net()
                        || policy.has_leases()
                        || policy.may_close
                        || policy.may_be_in_files;
                    asked.push((key.as_str(), rules, *cost, *need));
                }
                let is_exact = |(key, ..): &(&str, _, _, _)| !tallies[&(*branch, *key)].is_vague;
                if is_steady && !is_late && asked.iter().any(|(_, _, cost, _)| *cost > 0) && asked.iter().all(is_exact)
                {
                    let asked = asked.iter().map(|(key, rules, _, need)| (&tallies[&(*branch, *key)], &**rules, *need));
                    check_verdict(asked, (*verdict, *wait_us), *at_us, entry.us)?;
                }
                for (key, rules, cost, _) in asked {
                    let Some(tally) = tallies.get_mut(&(*branch, key)) else { continue };
                    if *is_charged && cost > 0 && *verdict == Verdict::Admitted {
                        let live = if *is_late { charged_late(cost, &rules) } else { cost };
                        let hit = Hit {
                            us: entry.us,
                            steady_us: *steady_us,
                            at_us: *at_us,
                            cost,
                            live,
                            is_corrected: false,
                            is_late: *is_late,
                        };
                        tally.hits.push(hit);
                        if !is_late {
                            tally.check(key, &rules)?;
                        }
                    }
                }
            }
            Deed::Corrected { keys, admitted_us, costs, used, changed } if *changed > 0 => {
                let corrected = keys.iter().zip(costs).zip(used).filter(|((_, cost), used)| cost != used);
                let number = corrected.clone().count();
                for ((key, cost), used) in corrected {
                    let Some((policy, rules)) = find(scenario, key) else { continue };
                    let used = policy.least_settled(*used, &rules);
                    let correct = |tally: &mut Tally| match policy.prefetch_us {
                        Some(_) => tally.correct_part(*admitted_us, *cost, used, entry.us),
                        None => tally.correct(*admitted_us, *cost, used, entry.us),
                    };
                    let Some(tally) = tallies.get_mut(&(*branch, key.as_str())) else { continue };
                    tally.is_vague |= usize::try_from(*changed) != Ok(number);
                    if correct(tally) {
                        continue;
                    }
                    // It may be a call of a server whose place this one took, or of the one that took its place.
                    tally.is_vague = true;
                    tally.given_back.push((entry.us, cost.saturating_sub(used)));
                    let mut others = tallies.iter_mut().filter(|((other, name), _)| other != branch && name == key);
                    if *branch == 0 && !others.any(|(_, tally)| correct(tally)) {
                        let how = format!("{key} has corrected a call of cost {cost} at {admitted_us} once more");
                        return Err(Violation { us: entry.us, promise: BACK, how });
                    }
                }
            }
            Deed::Removed { keys } => {
                for key in keys {
                    if let Some(tally) = tallies.get_mut(&(*branch, key.as_str())) {
                        tally.lost.push(entry.us);
                        tally.lost.sort_unstable();
                    }
                }
            }
            Deed::Corrected { .. }
            | Deed::Banned { .. }
            | Deed::Paused { .. }
            | Deed::FoundPaused { .. }
            | Deed::Probed { .. } => {}
        }
    }
    Ok(())
}

/// Checks a decision against what is counted in the tallies, where sliding windows are all rules.
fn check_verdict<'t>(
    asked: impl Iterator<Item = (&'t Tally, &'t [Rule], u64)>,
    (verdict, wait_us): (Verdict, i64),
    at_us: u64,
    us: u64,
) -> Result<(), Violation> {
    let (mut expected, mut costs) = (0, Vec::new());
    for (tally, rules, cost) in asked {
        costs.push(cost);
        for rule in rules {
            let Algorithm::SlidingWindow { per } = rule.algorithm() else { return Ok(()) };
            if tally.lost.iter().any(|lost| lost + micros(*per) * 2 > us && *lost <= us) {
                return Ok(());
            }
            expected = match tally.wait_us(rule, cost, micros(*per), at_us) {
                Some(wait) if expected >= 0 => expected.max(wait),
                _ => -1,
            };
        }
    }
    let found = match verdict {
        Verdict::Admitted => 0,
        Verdict::Denied(_) => wait_us,
        Verdict::Banned | Verdict::Undecided => return Ok(()),
    };
    if found == expected {
        return Ok(());
    }
    let how = format!("a call of cost {costs:?} at {at_us} has to wait {expected} and was told {found}");
    Err(Violation { us, promise: EXACT, how })
}

/// What a call counts that was settled where it had cost nothing.
fn charged_late(used: u64, rules: &[Rule]) -> u64 {
    let windows = rules.iter().filter(|rule| matches!(rule.algorithm(), Algorithm::SlidingWindow { .. }));
    windows.map(Rule::count).max().map_or(used, |most| used.min(most))
}

impl Tally {
    /// Checks all windows that end with the last call.
    fn check(&self, key: &str, rules: &[Rule]) -> Result<(), Violation> {
        rules.iter().try_for_each(|rule| match rule.algorithm() {
            Algorithm::SlidingWindow { per } => self.check_window(key, rule, micros(*per)),
            _ => self.check_other(key, rule),
        })
    }

    fn check_window(&self, key: &str, rule: &Rule, per_us: u64) -> Result<(), Violation> {
        let Some(last) = self.hits.last() else { return Ok(()) };
        let mut sum = 0;
        for hit in self.hits.iter().rev().take_while(|hit| hit.steady_us + per_us > last.steady_us) {
            // What was charged before a loss may be counted no more: that makes (1 + losses) times the count.
            if self.losses(hit.us, last.us) > 0 {
                break;
            }
            sum += weight(rule, hit.live);
            if sum > rule.count() {
                return Err(last.violation(WINDOW, key, rule, sum));
            }
        }
        Ok(())
    }

    /// The other algorithms: by what was charged, less all that was given back meanwhile.
    fn check_other(&self, key: &str, rule: &Rule) -> Result<(), Violation> {
        let (Some(last), Some(Reach { per_us, most })) = (self.hits.last(), reach(rule)) else { return Ok(()) };
        let is_in_reach = |hit: &&Hit| match rule.algorithm() {
            Algorithm::Cron { .. } => hit.at_us / per_us == last.at_us / per_us,
            _ => hit.steady_us + per_us > last.steady_us,
        };
        let mut sum = 0;
        for hit in self.hits.iter().rev().take_while(is_in_reach) {
            if self.losses(hit.us, last.us) > 0 {
                break;
            }
            sum += if hit.is_late { 0 } else { hit.cost };
            let back: u64 = self.given_back.iter().filter(|(us, _)| *us >= hit.us).map(|(_, cost)| cost).sum();
            if sum > most + back {
                return Err(last.violation(OTHER, key, rule, sum));
            }
        }
        Ok(())
    }

    /// How long a call has to wait; `None` if for ever.
    fn wait_us(&self, rule: &Rule, cost: u64, per_us: u64, at_us: u64) -> Option<i64> {
        // Any call is a duplicate, whatever it costs.
        let room = rule.count().checked_sub(if rule.role() == Role::Duplicate { 1 } else { cost })?;
        let mut sum = 0;
        let live = self.hits.iter().rev().take_while(|hit| hit.at_us + per_us > at_us);
        let in_the_way = live.into_iter().find(|hit| {
            sum += weight(rule, hit.live);
            sum > room
        });
        Some(in_the_way.map_or(0, |hit| i64::try_from(hit.at_us + per_us - at_us).unwrap_or(i64::MAX)))
    }

    /// Returns whether there is such a call that was not corrected before.
    fn correct(&mut self, admitted_us: u64, cost: u64, used: u64, us: u64) -> bool {
        // Which of the calls of one time and one cost it was makes no difference.
        let is_open = |hit: &&mut Hit| hit.at_us == admitted_us && hit.cost == cost && !hit.is_corrected;
        let Some(hit) = self.hits.iter_mut().rev().find(is_open) else { return false };
        hit.is_corrected = true;
        if hit.live > used {
            self.given_back.push((us, hit.live - used));
        }
        hit.live = used;
        true
    }

    /// Corrects calls of a policy with `prefetch`, of which several may have been taken at one time. Which of them a correction is
    /// about is not known, so their sum is corrected. Returns whether so much was still counted.
    fn correct_part(&mut self, admitted_us: u64, cost: u64, used: u64, us: u64) -> bool {
        let mut open: Vec<_> = self.hits.iter_mut().filter(|hit| hit.at_us == admitted_us).collect();
        if open.iter().map(|hit| hit.live).sum::<u64>() < cost {
            return false;
        }
        let mut left = cost;
        for hit in &mut open {
            let taken = left.min(hit.live);
            (hit.live, left) = (hit.live - taken, left - taken);
        }
        let Some(first) = open.first_mut() else { return false };
        first.live += used;
        if cost > used {
            self.given_back.push((us, cost - used));
        }
        true
    }

    /// How often state was lost between two calls.
    fn losses(&self, from_us: u64, until_us: u64) -> u64 {
        self.lost.iter().filter(|lost| (from_us..=until_us).contains(lost)).count() as u64
    }
}

impl Hit {
    fn violation(&self, promise: &'static str, key: &str, rule: &Rule, sum: u64) -> Violation {
        let how = format!("{key} has {sum} under `{rule}`, by the server's time {}", self.at_us);
        Violation { us: self.us, promise, how }
    }
}

/// How far back a rule counts, and how much it admits there at most.
pub(super) struct Reach {
    pub(super) per_us: u64,
    pub(super) most: u64,
}

pub(super) fn reach(rule: &Rule) -> Option<Reach> {
    let count = rule.count();
    Some(match rule.algorithm() {
        // In a fixed window one call less, unless the call that opened it was refunded.
        Algorithm::FixedWindow { per } | Algorithm::SlidingCounter { per } => {
            Reach { per_us: micros(*per), most: 2 * count }
        }
        Algorithm::TokenBucket(bucket) => {
            let capacity = rule.capacity().unwrap_or(count);
            Reach { per_us: micros(bucket.per()), most: capacity + count }
        }
        Algorithm::Cron { .. } => Reach { per_us: seconds(rule)? * 1_000_000, most: count },
        _ => return None,
    })
}

/// The seconds of a schedule that starts again at their multiples.
fn seconds(rule: &Rule) -> Option<u64> {
    rule.to_string().split_once("*/")?.1.split_once(' ')?.0.parse().ok()
}

/// What a call weighs under a rule: one against duplicates, whatever it costs.
fn weight(rule: &Rule, cost: u64) -> u64 {
    if rule.role() == Role::Duplicate { cost.min(1) } else { cost }
}

fn micros(per: std::time::Duration) -> u64 {
    u64::try_from(per.as_micros()).unwrap_or(u64::MAX)
}

/// The times at which state may have been lost.
fn losses(history: &[Entry]) -> Vec<u64> {
    let lost = history.iter().filter(|entry| matches!(entry.event, Event::Lost { .. }));
    lost.map(|entry| entry.us).collect()
}
