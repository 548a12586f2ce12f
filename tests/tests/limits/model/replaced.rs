//! Subjects that replace each other in memory: whatever is left of them, no call is admitted that the model would deny.

use std::ops::AddAssign;
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt as _;
use tallygate::testing::ManualClock;
use tallygate::{Algorithm, Ban, Check, Decision, Limiter, Permit, Policy, Rule, Subject};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::lifetime::lifetime;
use tallygate_harness::model::{Call, Costs, Drops, Model, Plan, Ticket, UNITS, Used, Verdict};
use tallygate_rules::MAX_STANDSTILL;

use crate::model::policies::{Concurrency, LABELS, LEASE, Version, overriding, versions};

#[allow(clippy::cast_possible_truncation, reason = "it is less than a second")]
const STANDSTILL_US: u64 = MAX_STANDSTILL.as_micros() as u64;

const CALLS: usize = 400;
const SUBJECTS: usize = 64;
const SCALES: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(60), Duration::from_secs(86_400), Duration::from_secs(30 * 86_400)];

/// The most permits of running calls, whose subjects keep their places.
const RUNNING: usize = 8;

/// The longest step of time where leases must not end.
const RUNNING_STEP_US: u64 = 4_000_000;

/// How often it met what.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    admitted: u64,
    denied: u64,
    banned: u64,
    early: u64,
    corrected: u64,
    /// Steps of the clock back, by less than it stands still.
    back: u64,
    ended: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.denied += other.denied;
        self.banned += other.banned;
        self.early += other.early;
        self.corrected += other.corrected;
        self.back += other.back;
        self.ended += other.ended;
    }
}

impl Seen {
    /// Checks that the sequences were worth their time.
    pub(crate) fn assert_wide(&self) {
        let least = self.admitted.min(self.denied).min(self.banned).min(self.corrected);
        assert!(least > 500 && self.early > 0 && self.back > 500 && self.ended > 500, "{self:?}");
    }
}

/// A limiter in memory for few subjects, and what the model knows of each of two policies.
struct Stage {
    limiter: Limiter,
    clock: ManualClock,
    random: Rng,
    seed: u64,
    /// The latest time that the clock has shown.
    now_us: u64,
    /// The time that it shows.
    shown_us: u64,
    running: Concurrency,
    /// Whether the clock goes back now and then.
    goes_back: bool,
    /// Whether the model no longer knows what counts.
    is_over: bool,
    policies: [Known; 2],
    permits: Vec<(usize, Permit, Ticket)>,
    seen: Seen,
}

struct Known {
    versions: Vec<Version>,
    overrides: Vec<Vec<Rule>>,
    model: Model,
}

/// Plays a random sequence under random policies.
pub(crate) fn admits_no_more_than_the_model(seed: u64) -> Seen {
    let mut stage = Stage::new(seed);
    for _ in 0..CALLS {
        stage.step();
        if stage.is_over {
            break;
        }
    }
    stage.seen
}

impl Known {
    fn new(versions: Vec<Version>, overrides: Vec<Vec<Rule>>) -> Self {
        Self { versions, overrides, model: Model::new(Drops::AtOnce) }
    }
}

impl Stage {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let shortest = *random.choice(&SCALES).unwrap();
        let places = if random.bool() { 1 } else { LABELS.len() };
        let may_run = shortest < LEASE && random.bool();
        let running = if may_run { Concurrency::Limited } else { Concurrency::Unlimited };
        // Windows that are as short as the clock may stand still end early then.
        let goes_back = running == Concurrency::Unlimited && !shortest.is_zero() && random.bool();
        let mut versions = versions(&mut random, shortest, places, running);
        // Memory drops a tally when nothing counts any more by the rules of its last call, whatever those of the next one say.
        let has_bucket = |rule: &Rule| matches!(rule.algorithm(), Algorithm::TokenBucket(_));
        let lifetimes = |version: &Version| {
            let rules = version.policy.rules().iter();
            rules.map(|rule| lifetime(rule, START_US)).collect::<Vec<_>>()
        };
        let of_first = lifetimes(&versions[0]);
        versions.retain(|version| lifetimes(version) == of_first);
        let is_closed = |rule: &Rule| has_bucket(rule) && rule.count() == 0;
        versions.retain(|version| !version.policy.rules().iter().any(is_closed));
        let overrides = if running == Concurrency::Limited { 0 } else { random.usize(..3) };
        let overrides = (0..overrides).map(|_| overriding(&mut random, shortest, &versions[0]));
        let overrides = overrides.filter(|rules| !rules.iter().any(has_bucket)).collect();
        let clock = ManualClock::new(time(START_US));
        let max_subjects = if places > 1 { random.usize(16..64) } else { 1 << random.usize(..7) };
        let limiter = Limiter::builder().clock(&clock).max_subjects(max_subjects).build_in_memory().unwrap();
        let policies = [Known::new(versions, overrides), Known::new(vec![other(&mut random)], Vec::new())];
        let permits = Vec::new();
        Self {
            limiter,
            clock,
            random,
            seed,
            now_us: START_US,
            shown_us: START_US,
            running,
            goes_back,
            is_over: false,
            policies,
            permits,
            seen: Seen::default(),
        }
    }

    fn step(&mut self) {
        let per = self.random.choice(self.policies[0].versions[0].policy.rules()).and_then(Rule::per);
        let per_us = u64::try_from(per.unwrap_or(Duration::from_secs(60)).as_micros()).unwrap();
        let passed_us = match self.random.u8(..16) {
            0 => self.random.u64(..=per_us),
            1..6 => self.random.u64(..=per_us / 16),
            6..12 => self.random.u64(..=per_us / 256),
            _ => 0,
        };
        match self.running {
            Concurrency::Limited => self.now_us += passed_us.min(RUNNING_STEP_US),
            Concurrency::Unlimited => self.now_us += passed_us,
        }
        self.shown_us = self.now_us;
        if self.goes_back && self.random.u8(..3) == 0 {
            self.shown_us -= self.random.u64(..=STANDSTILL_US);
            self.seen.back += 1;
        }
        self.clock.set(time(self.shown_us));
        match self.random.u8(..40) {
            0..6 => self.correct(),
            6 => self.override_rules(),
            _ => self.call(),
        }
    }

    /// Drops a permit.
    fn end(&mut self, (policy, permit, ticket): (usize, Permit, Ticket)) {
        self.seen.ended += u64::from(ticket.is_running());
        drop(permit);
        self.policies[policy].model.end(&ticket);
    }

    fn call(&mut self) {
        let now_us = self.shown_us;
        let (policy, version, call) = self.any_call();
        let model = &mut self.policies[policy].model;
        let peek = Call { peek: true, ..call.clone() };
        let expected = model.decide(&peek, now_us).verdict;
        let is_refundable = self.random.bool();
        let checked = |is_peek: bool| {
            let subject = subject(0, &call);
            let mut check = check(&self.limiter, &self.policies[policy].versions[version], &call, &subject);
            check = if is_refundable && !is_peek { check.refundable() } else { check };
            check = if is_peek { check.peek() } else { check };
            check.into_future().now_or_never().unwrap()
        };
        let decision = match checked(false) {
            Ok(Decision::Allowed(permit)) => Ok(permit),
            Ok(Decision::Denied(denial)) => Err(denial),
            // All others are banned.
            Err(_) => return,
        };
        let is_banned_then =
            decision.is_err() && matches!(checked(true), Ok(Decision::Denied(denial)) if denial.rule().is_none());
        let bans = self.policies[policy].versions[version].policy.ban().is_some();
        let model = &mut self.policies[policy].model;
        match decision {
            // A subject that returns is looked up at the latest time of all, but the model stands still for each by itself.
            Ok(_)
                if self.goes_back
                    && model.decide(&peek, self.now_us).verdict == Verdict::Admitted
                    && expected != Verdict::Admitted =>
            {
                self.is_over = true;
            }
            Ok(permit) => {
                assert_eq!(expected, Verdict::Admitted, "seed {}, at {}: {call:?}", self.seed, now_us);
                self.seen.admitted += 1;
                model.decide(&call, now_us);
                let ticket = model.ticket(&call);
                if is_refundable {
                    self.permits.push((policy, permit, ticket));
                } else {
                    self.end((policy, permit, ticket));
                }
                if self.running == Concurrency::Limited && self.permits.len() > RUNNING {
                    let permit = self.permits.swap_remove(self.random.usize(..RUNNING));
                    self.end(permit);
                }
            }
            Err(denial) => {
                self.seen.denied += 1;
                self.seen.early += u64::from(expected == Verdict::Admitted);
                match (denial.rule(), &expected) {
                    (Some(_), Verdict::Denied(..)) => drop(model.decide(&call, now_us)),
                    // As above: the ban may be over at the latest time.
                    (Some(_), Verdict::Banned(_))
                        if self.goes_back
                            && !matches!(model.decide(&peek, self.now_us).verdict, Verdict::Banned(_)) =>
                    {
                        self.is_over = true;
                    }
                    (Some(_), Verdict::Banned(_)) => panic!("seed {}: a ban is lost: {call:?}", self.seed),
                    _ => {}
                }
                let is_banned = matches!(model.decide(&peek, now_us).verdict, Verdict::Banned(_));
                if is_banned_then {
                    self.seen.banned += 1;
                    if bans && !is_banned {
                        // It was banned for denials of which the model does not know, and these begin anew.
                        model.ban(&call, Duration::ZERO, now_us);
                    }
                } else if is_banned && self.goes_back {
                    // A denial that led to the ban may be over at the latest time.
                    self.is_over = true;
                }
            }
        }
    }

    fn correct(&mut self) {
        if self.permits.is_empty() {
            return;
        }
        let (policy, permit, ticket) = self.permits.swap_remove(self.random.usize(..self.permits.len()));
        let now_us = self.shown_us;
        self.seen.corrected += 1;
        let model = &mut self.policies[policy].model;
        if self.random.u8(..3) == 0 {
            model.refund(&ticket, now_us);
            model.end(&ticket);
            permit.refund().now_or_never().unwrap().unwrap();
            return;
        }
        let mut used = |cost: u64| self.random.u64(..=cost.saturating_mul(2).saturating_add(2));
        let costs = ticket.costs();
        let units = costs.units.map(|cost| cost.map(&mut used));
        let used = Used { calls: ticket.is_paid_in_calls().then(|| used(costs.calls)), units };
        let named = UNITS.into_iter().zip(used.units).filter_map(|(unit, used)| Some((unit, used?)));
        let named: Vec<_> = used.calls.map(|calls| ("calls", calls)).into_iter().chain(named).collect();
        // A call that has cost nothing cannot be settled.
        if permit.settle_units(&named).now_or_never().unwrap().is_ok() {
            model.settle(&ticket, &used, now_us);
        }
        model.end(&ticket);
    }

    fn override_rules(&mut self) {
        let Known { overrides, model, .. } = &mut self.policies[0];
        let rules = self.random.choice(&*overrides).filter(|_| self.random.bool()).cloned();
        model.override_rules(None, rules.clone());
        let builder = self.limiter.override_policy("model").allow_unknown();
        match rules {
            Some(rules) => builder.rules(rules).set().now_or_never().unwrap().unwrap(),
            None => drop(builder.clear().now_or_never().unwrap().unwrap()),
        }
    }

    /// Returns a policy, its version, and a call. Few subjects call often, and all of them at times.
    fn any_call(&mut self) -> (usize, usize, Call) {
        let policy = usize::from(self.random.u8(..4) == 0);
        let version = self.random.usize(..self.policies[policy].versions.len());
        let known = &self.policies[policy].versions[version];
        let units = UNITS.map(|unit| {
            known.policy.units().any(|own| own == unit).then(|| cost(&mut self.random, &known.policy, Some(unit)))
        });
        let most = if known.plan.is_paid_in_calls() { u64::MAX } else { 1 };
        let costs = Costs { calls: cost(&mut self.random, &known.policy, None).min(most), units };
        let most = if self.random.u8(..3) == 0 { 4 } else { SUBJECTS };
        let subjects = [self.random.usize(..most), self.random.usize(..4), 0];
        (policy, version, Call { plan: known.plan.clone(), subjects, costs, report: false, peek: false })
    }
}

/// Another policy in the same store, whose windows are of different lengths.
fn other(random: &mut Rng) -> Version {
    let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
    let rules = [Rule::sliding_window(random.u64(1..4), minute), Rule::fixed_window(random.u64(2..9), day)];
    let ban = Ban::new(random.u64(1..4), minute * random.u32(1..9), minute * random.u32(1..9));
    let policy = Policy::builder("other").rules(rules.clone()).ban(ban).build().unwrap();
    Version { plan: Plan::new(rules.map(|rule| (0, rule)).into(), Some(ban)), policy, subjects: vec![0, 0] }
}

fn subject(place: usize, call: &Call) -> Subject {
    Subject::of(place).and(call.subjects[place])
}

fn check<'a>(limiter: &'a Limiter, version: &'a Version, call: &Call, main: &'a Subject) -> Check<'a> {
    let mut check = limiter.check(&version.policy, main).cost(call.costs.calls);
    for (place, label) in LABELS.into_iter().enumerate() {
        if let Some(label) = label.filter(|_| version.subjects.contains(&place)) {
            check = check.subject(label, &subject(place, call));
        }
    }
    let named = UNITS.into_iter().zip(call.costs.units).filter_map(|(unit, cost)| Some((unit, cost?)));
    named.fold(check, |check, (unit, cost)| check.cost_of(unit, cost))
}

fn cost(random: &mut Rng, policy: &Policy, unit: Option<&str>) -> u64 {
    let rules: Vec<_> = policy.rules().iter().filter(|rule| rule.unit() == unit).collect();
    let Some(rule) = random.choice(rules) else { return 1 };
    if random.u8(..3) > 0 { 1 } else { random.u64(..=rule.capacity().unwrap_or(rule.count()).saturating_add(1)) }
}
