//! Parts of what is taken ahead: what callers use was counted a short time before, and calls of a busy subject have a part.

use std::collections::{BTreeMap, BTreeSet};

use tallygate::{DecidedBy, Rule};

use super::keys::tally;
use super::prefetch::{Place, place};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{Action, CallPlan, PolicyPlan, Scenario, Topology};

const LASTS: &str = "what is taken ahead is used before the time of `prefetch` is over";
const TAKEN: &str = "calls of a busy subject are taken ahead, of each unit";

/// So many calls of a subject in half of the time of `prefetch` make it busy: enough for a process that looks at every eight.
const BUSY: usize = 24;

/// The smallest count of a rule under which calls are taken ahead.
const SMALLEST_COUNT: u64 = 100;

/// How many trips it takes at most until a part was asked for: it may have to wait for a connection.
const TRIPS: u64 = 30;

/// How long a denial keeps a process from taking anything ahead.
const DENIED_US: u64 = 1_000_000;

/// A call that was admitted, at some time between.
struct AdmittedSpan {
    process: usize,
    from_us: u64,
    until_us: u64,
    cost: u64,
    /// Whether a part may decide it.
    is_plain: bool,
}

/// One subject in one unit: its admitted calls, and what servers have counted of it.
#[derive(Default)]
struct SubjectInUnit {
    admitted: Vec<AdmittedSpan>,
    /// What servers have counted, and when.
    counted: Vec<(u64, u64)>,
    /// When a part was asked for, whatever the answer was.
    asked: Vec<u64>,
}

#[derive(Default)]
struct Parts<'h> {
    begun: BTreeMap<usize, (&'h CallPlan, u64)>,
    subjects: BTreeMap<Place, SubjectInUnit>,
    /// By policy and subject, when a call was denied, or something was changed by hand.
    troubled: BTreeMap<(usize, usize), Vec<u64>>,
    /// Processes that are drained take nothing ahead.
    drained: BTreeSet<usize>,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    if !scenario.policies.iter().any(|policy| policy.prefetch_us.is_some()) {
        return Ok(());
    }
    let mut parts = Parts::default();
    for entry in history {
        parts.add(scenario, entry);
    }
    parts.subjects.iter().try_for_each(|(place, subject)| {
        let policy = &scenario.policies[place.0];
        subject.check_lasting(policy)?;
        parts.check_taken(scenario, *place, subject)
    })
}

impl<'h> Parts<'h> {
    fn add(&mut self, scenario: &Scenario, entry: &'h Entry) {
        match &entry.event {
            Event::Called { call, plan, .. } => {
                self.begun.insert(*call, (plan, entry.us));
                match plan.action {
                    Action::Stop(_) => _ = self.drained.insert(plan.process),
                    _ if plan.is_administration() => self.trouble((plan.policy, plan.subject), entry.us),
                    _ => {}
                }
            }
            Event::Answered { call, answer, .. } => {
                let Some((plan, from_us)) = self.begun.remove(call) else { return };
                match answer {
                    Answer::Admitted(DecidedBy::Backend) => self.admit(scenario, plan, (from_us, entry.us)),
                    _ => self.trouble((plan.policy, plan.subject), entry.us),
                }
            }
            Event::Done {
                deed: Deed::Decided { keys, costs, is_late: false, is_charged, verdict, counts_denial, .. },
                ..
            } => {
                if *verdict != Verdict::Admitted {
                    keys.iter().filter_map(|key| tally(scenario, key)).for_each(|tally| self.trouble(tally, entry.us));
                }
                for (key, cost) in keys.iter().zip(costs) {
                    let Some(place) = place(scenario, key) else { continue };
                    let subject = self.subjects.entry(place).or_default();
                    if *is_charged && *verdict == Verdict::Admitted {
                        subject.counted.push((entry.us, *cost));
                    }
                    // A part that is denied does not count towards a ban.
                    if *is_charged && !counts_denial && keys.len() == 1 {
                        subject.asked.push(entry.us);
                    }
                }
            }
            _ => {}
        }
    }

    fn trouble(&mut self, tally: (usize, usize), us: u64) {
        self.troubled.entry(tally).or_default().push(us);
    }

    fn admit(&mut self, scenario: &Scenario, plan: &CallPlan, (from_us, until_us): (u64, u64)) {
        let policy = scenario.policies.get(plan.policy).filter(|policy| policy.prefetch_us.is_some());
        let Some(policy) = policy.filter(|_| plan.action != Action::Peek) else { return };
        for (number, group) in policy.groups.iter().enumerate() {
            let (process, cost, is_plain) = (plan.process, plan.cost_of(group.unit), plan.action != Action::Report);
            let span = AdmittedSpan { process, from_us, until_us, cost, is_plain };
            self.subjects.entry((plan.policy, number, plan.subject)).or_default().admitted.push(span);
        }
    }

    /// Checks that a process that is busy with a subject has asked for a part, where nothing fails and nothing is denied.
    fn check_taken(&self, scenario: &Scenario, place: Place, subject: &SubjectInUnit) -> Result<(), Violation> {
        let policy = &scenario.policies[place.0];
        let (ahead_us, trip_us) =
            (policy.prefetch_us.unwrap_or_default(), scenario.link.delay_us + scenario.link.jitter_us);
        let deadline_us = policy.deadline_us.unwrap_or(scenario.settings.deadline_us);
        let has_time = deadline_us.min(ahead_us) > TRIPS * trip_us;
        let is_large = |rule: &Rule| rule.count() >= SMALLEST_COUNT;
        // In a cluster, a call of several subjects is asked for in parts, too.
        let is_known =
            has_time && scenario.topology == Topology::Server && policy.groups[place.1].rules.iter().all(is_large);
        if !is_known {
            return Ok(());
        }
        let troubled = self.troubled.get(&(place.0, place.2)).map(Vec::as_slice).unwrap_or_default();
        for process in (0..scenario.processes.len()).filter(|process| !self.drained.contains(process)) {
            let own = |span: &&AdmittedSpan| span.process == process && span.is_plain && span.cost > 0;
            let calls: Vec<_> = subject.admitted.iter().filter(own).map(|span| span.from_us).collect();
            for busy in calls.windows(BUSY) {
                let [from_us, .., until_us] = *busy else { continue };
                let is_busy = until_us <= from_us + ahead_us / 2;
                let until_us = until_us + TRIPS * trip_us;
                let between = |first_us: u64, us: &u64| (first_us..=until_us).contains(us);
                let is_troubled = |us: &u64| between(from_us.saturating_sub(DENIED_US + ahead_us), us);
                let is_asked = |us: &u64| between(from_us.saturating_sub(2 * ahead_us), us);
                if !is_busy
                    || !scenario.is_calm_until(until_us)
                    || troubled.iter().any(is_troubled)
                    || subject.asked.iter().any(is_asked)
                {
                    continue;
                }
                let how = format!("process {process} made {BUSY} calls under {} within {ahead_us} µs", policy.name);
                return Err(Violation { us: until_us, promise: TAKEN, how });
            }
        }
        Ok(())
    }
}

impl SubjectInUnit {
    /// Checks of all calls from one on that no more is used than was counted a short time before.
    fn check_lasting(&self, policy: &PolicyPlan) -> Result<(), Violation> {
        let ahead_us = policy.prefetch_us.unwrap_or_default();
        let mut admitted: Vec<_> = self.admitted.iter().collect();
        admitted.sort_by_key(|span| span.from_us);
        for (place, first) in admitted.iter().enumerate() {
            let from_us = first.from_us.saturating_sub(ahead_us);
            let mut next: Vec<_> =
                admitted[place..].iter().take_while(|span| span.from_us <= first.from_us + ahead_us).collect();
            next.sort_by_key(|span| span.until_us);
            let mut counted = self.counted[self.counted.partition_point(|(us, _)| *us < from_us)..].iter().peekable();
            let (mut used, mut taken) = (0, 0);
            for span in next {
                used += span.cost;
                while let Some((_, cost)) = counted.next_if(|(us, _)| *us <= span.until_us) {
                    taken += cost;
                }
                if used > taken {
                    let how = format!(
                        "under {}, callers got {used} from {} µs on, and servers have counted {taken} since {from_us} µs",
                        policy.name, first.from_us
                    );
                    return Err(Violation { us: span.until_us, promise: LASTS, how });
                }
            }
        }
        Ok(())
    }
}
