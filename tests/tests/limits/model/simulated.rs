//! Traces of a simulation.

use std::ops::AddAssign;
use std::time::Duration;

use fastrand::Rng;
use tallygate::simulation::{self, Simulation};
use tallygate::{Decision, Subject};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::model::{Call, Costs, Drops, Model, UNITS, Verdict};

use crate::model::policies::{Concurrency, LABELS, Version, versions};

const CALLS: usize = 60;
const SUBJECTS: usize = 3;

/// How often a trace met what.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    admitted: u64,
    denied: u64,
    banned: u64,
    never: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.denied += other.denied;
        self.banned += other.banned;
        self.never += other.never;
    }
}

impl Seen {
    /// Checks that the traces were worth their time.
    pub(crate) fn assert_wide(&self) {
        let least = self.admitted.min(self.denied).min(self.banned).min(self.never);
        assert!(least > 1_000, "{self:?}");
    }

    fn add(&mut self, verdict: &Verdict) {
        *(match verdict {
            Verdict::Admitted => &mut self.admitted,
            Verdict::Denied(_, None) | Verdict::Banned(None) => &mut self.never,
            Verdict::Denied(..) => &mut self.denied,
            Verdict::Banned(_) => &mut self.banned,
        }) += 1;
    }
}

/// Plays a random trace under a random policy: each decision and the summary have to be those of the model.
pub(crate) fn equals_the_model(random: &mut Rng) -> Seen {
    let version = versions(random, Duration::ZERO, LABELS.len(), Concurrency::Unlimited).swap_remove(0);
    let (mut model, mut simulation) = (Model::new(Drops::Together), Simulation::new(&version.policy));
    let (mut seen, mut now_us) = (Seen::default(), START_US);
    let mut by_rule = vec![0; version.policy.rules().len()];
    for _ in 0..CALLS {
        now_us += pause_us(random, &version);
        let subjects = [(); 3].map(|()| random.usize(..SUBJECTS));
        let most = if version.plan.is_paid_in_calls() { u64::MAX } else { 1 };
        let calls = cost(random, &version, None).min(most);
        let units =
            UNITS.map(|unit| version.policy.units().any(|own| own == unit).then(|| cost(random, &version, Some(unit))));
        let costs = Costs { calls, units };
        let call = Call { plan: version.plan.clone(), subjects, costs, report: false, peek: false };
        let expected = model.decide(&call, now_us).verdict;
        let decision = simulation.call(&simulated(&version, &call, now_us)).unwrap();
        assert_eq!(verdict(&decision), expected, "at {now_us}: {:?}", version.policy);
        if let Verdict::Denied(rule, _) = expected {
            by_rule[rule] += 1;
        }
        seen.add(&expected);
    }
    let summary = simulation.summary();
    assert_eq!(summary.admitted(), seen.admitted);
    assert_eq!(summary.denials().rules().map(|(_, denials)| denials).collect::<Vec<_>>(), by_rule);
    assert_eq!((summary.calls(), summary.never()), (CALLS as u64, seen.never));
    seen
}

fn simulated(version: &Version, call: &Call, now_us: u64) -> simulation::TraceCall {
    let subject = |place: usize| Subject::of(place).and(call.subjects[place]);
    let plain = simulation::TraceCall::new(time(now_us), subject(0)).with_cost(call.costs.calls);
    let named = UNITS.into_iter().zip(call.costs.units).filter_map(|(unit, cost)| Some((unit, cost?)));
    let plain = named.fold(plain, |call, (unit, cost)| call.with_cost_of(unit, cost));
    let counted = (1..LABELS.len()).filter(|place| version.subjects.contains(place));
    counted.fold(plain, |call, place| call.with_subject(LABELS[place].unwrap(), subject(place)))
}

fn verdict(decision: &Decision) -> Verdict {
    let Decision::Denied(denial) = decision else { return Verdict::Admitted };
    let wait = denial.retry_after().map(|wait| wait.as_micros());
    denial.rule().map_or(Verdict::Banned(wait), |rule| Verdict::Denied(rule.position(), wait))
}

/// Some of a rule's time, or none.
fn pause_us(random: &mut Rng, version: &Version) -> u64 {
    let per = random.choice(version.policy.rules()).and_then(tallygate::Rule::per).unwrap_or(Duration::from_secs(60));
    let per_us = u64::try_from(per.as_micros()).unwrap();
    if random.u8(0..4) == 0 { 0 } else { random.u64(0..=per_us / 4) }
}

fn cost(random: &mut Rng, version: &Version, unit: Option<&str>) -> u64 {
    let rules: Vec<_> = version.policy.rules().iter().filter(|rule| rule.unit() == unit).collect();
    let Some(rule) = random.choice(rules) else { return 1 };
    if random.u8(0..3) > 0 { 1 } else { random.u64(0..=rule.capacity().unwrap_or(rule.count()).saturating_add(1)) }
}
