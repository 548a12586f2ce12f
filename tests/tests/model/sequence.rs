//! A sequence of calls and of all else that callers do, at chosen instants, put to a limiter and to the model at once.

mod choices;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tallygate::{Check, Decision, Limiter, Permit, Rule, Subject};
use tallygate_tests::clocked::START_US;
use tallygate_tests::model::{Answer, Call, Model, Ticket, Verdict};

use crate::coverage::Coverage;
use crate::policies::{self, LABELS, Version};
use crate::told::{Act, Told};

/// When some of them begin: in 2200, when the times need as many bits as they ever will.
const LATE_US: u64 = 7_258_118_400_000_000 - 7;
const STEPS: usize = 90;
/// How many subjects there are in each place of a call, the main one first.
const SUBJECTS: [usize; 3] = [4, 2, 1];
/// The most permits that are kept to be given back.
const PERMITS: usize = 16;

/// A limiter and the clock that it goes by.
pub(crate) struct Stage {
    pub(crate) limiter: Limiter,
    pub(crate) clock: Arc<AtomicU64>,
    /// How many times its largest count a log holds here: see [`Model::new`].
    pub(crate) spare: u8,
}

/// The state of a sequence.
struct Sequence<'a> {
    stage: &'a Stage,
    random: Rng,
    seed: u64,
    versions: Vec<Version>,
    /// Rules that override those of the versions now and then.
    overrides: Vec<Vec<Rule>>,
    model: Model,
    /// Whether the clock is set back now and then. Tallies in memory that are over leave when a new subject comes, and where
    /// the clock is set back this is one way or the other. So nobody new comes after the beginning of such a sequence, when
    /// everybody is admitted once, and nobody is forgotten.
    sets_back: bool,
    /// Whether somebody was banned by hand.
    banned_by_hand: bool,
    start_us: u64,
    now_us: u64,
    /// How long the last denial told to wait.
    wait_us: u64,
    permits: Vec<(Permit, Ticket)>,
    told: Told,
}

/// Plays the sequence of that seed, with rules that remember for no less than `shortest`.
///
/// # Panics
///
/// When the limiter does not say what the model says.
pub(crate) async fn play(stage: &Stage, seed: u64, shortest: Duration, coverage: &mut Coverage) {
    let mut random = Rng::with_seed(seed);
    let sets_back = random.bool();
    let everybody_is_admitted = sets_back && stage.spare == 0;
    let subjects = if everybody_is_admitted || random.bool() { 1 } else { SUBJECTS.len() };
    let versions = policies::versions(&mut random, shortest, subjects);
    let overrides = (0..random.usize(..3)).map(|_| policies::overriding(&mut random, shortest, &versions[0]));
    let is_open = |rules: &Vec<Rule>| rules.iter().all(|rule| rule.count() > 0);
    let overrides = overrides.filter(|rules| !everybody_is_admitted || is_open(rules)).collect();
    let start_us = if random.u8(0..8) == 0 { LATE_US } else { START_US };
    let mut sequence = Sequence {
        stage,
        sets_back,
        random,
        seed,
        told: Told::new(seed, &versions),
        versions,
        overrides,
        model: Model::new(stage.spare),
        banned_by_hand: false,
        start_us,
        now_us: start_us,
        wait_us: 0,
        permits: Vec::new(),
    };
    sequence.introduce_everybody(coverage).await;
    for _ in 0..STEPS {
        sequence.step(coverage).await;
    }
    for subject in [None].into_iter().chain((0..SUBJECTS[0]).map(Some)) {
        sequence.put_override(subject, None).await;
    }
}

impl Sequence<'_> {
    async fn introduce_everybody(&mut self, coverage: &mut Coverage) {
        let overrides = self.overrides.clone().into_iter().map(Some);
        for rules in overrides.chain([None]) {
            self.put_override(None, rules).await;
            let calls = (0..SUBJECTS[0]).map(|number| {
                let subjects = [number, number % SUBJECTS[1], 0];
                (0, Call { plan: self.versions[0].plan.clone(), subjects, cost: 1, report: true, peek: false })
            });
            let calls = calls.collect();
            self.call_at_once(calls, coverage).await;
        }
    }

    async fn step(&mut self, coverage: &mut Coverage) {
        let then_us = self.another_time();
        coverage.met_if("clock set back", then_us < self.now_us);
        self.now_us = then_us;
        self.stage.clock.store(then_us, Ordering::Relaxed);
        match self.random.u8(0..24) {
            0..4 => self.refund(coverage).await,
            4 if !self.sets_back => self.reset(coverage).await,
            5 => self.ban(coverage).await,
            6 | 7 if !self.overrides.is_empty() => self.override_rules(coverage).await,
            _ => {
                let calls = (0..self.random.usize(1..4)).map(|_| self.call()).collect();
                self.call_at_once(calls, coverage).await;
            }
        }
    }

    /// A call of a random version, with its number.
    fn call(&mut self) -> (usize, Call) {
        let version = self.random.usize(..self.versions.len());
        let cost = self.cost(version);
        let subjects = SUBJECTS.map(|subjects| self.random.usize(..subjects));
        let plan = self.versions[version].plan.clone();
        let call = Call { plan, subjects, cost, report: self.random.u8(0..3) == 0, peek: self.random.u8(0..8) == 0 };
        (version, call)
    }

    /// Makes calls that are under way at once, in their order.
    async fn call_at_once(&mut self, calls: Vec<(usize, Call)>, coverage: &mut Coverage) {
        self.stage.clock.store(self.now_us, Ordering::Relaxed);
        let mut expected = Vec::new();
        for (version, call) in &calls {
            let ticket = self.model.ticket(call, self.now_us);
            let answer = self.model.decide(call, self.now_us);
            self.cover(coverage, call, &answer);
            match answer.verdict {
                Verdict::Denied(_, Some(wait)) | Verdict::Banned(Some(wait)) => {
                    self.wait_us = u64::try_from(wait).unwrap()
                }
                _ => {}
            }
            self.told.note(self.now_us, Act::Call(*version, call.clone(), answer.clone()));
            expected.push((answer, ticket));
        }
        let answers = join_all(calls.iter().map(|(version, call)| self.answer(*version, call))).await;
        for ((expected, ticket), (answer, permit)) in expected.into_iter().zip(answers) {
            assert!(answer == expected, "the model says {expected:?}, the limiter {answer:?}\n{}", self.told);
            self.keep(permit, ticket);
        }
    }

    fn cover(&self, coverage: &mut Coverage, call: &Call, answer: &Answer) {
        let (by_one, by_all) = self.model.overridden(call);
        let rules = self.model.rules(call);
        let is_closed = (by_one || by_all) && rules.iter().any(|(_, rule)| rule.count() == 0);
        coverage.note(call, &rules, answer);
        coverage.met_if("overridden", by_one || by_all);
        coverage.met_if("overridden for one subject", by_one);
        coverage.met_if("door closed", is_closed);
        coverage.met_if("door closed and reported", is_closed && call.report);
        let is_banned = matches!(answer.verdict, Verdict::Banned(_));
        coverage.met_if("banned by denials", is_banned && !self.banned_by_hand);
    }

    async fn answer(&self, version: usize, call: &Call) -> (Answer, Option<Permit>) {
        let subject = self.subject(0, call.subjects[0]);
        let mut check = self.check(version, call, &subject).cost(call.cost).refundable();
        if call.report {
            check = check.report();
        }
        if call.peek {
            check = check.peek();
        }
        let decision = check.await.expect("the backend answers");
        let standings =
            decision.report().iter().map(|rule| (rule.remaining().into(), rule.reset().as_micros())).collect();
        let (verdict, permit) = match decision {
            Decision::Allowed(permit) => (Verdict::Admitted, Some(permit)),
            Decision::Denied(denial) => {
                let wait = denial.retry_after().map(|wait| wait.as_micros());
                let named = denial.rule().map(|rule| rule.position());
                (named.map_or(Verdict::Banned(wait), |rule| Verdict::Denied(rule, wait)), None)
            }
        };
        (Answer { verdict, standings }, permit)
    }

    fn check<'a>(&'a self, version: usize, call: &Call, subject: &'a Subject) -> Check<'a> {
        let Version { policy, subjects, .. } = &self.versions[version];
        let mut check = self.stage.limiter.check(policy, subject);
        for (place, label) in LABELS.into_iter().enumerate() {
            if let Some(label) = label.filter(|_| subjects.contains(&place)) {
                check = check.subject(label, &self.subject(place, call.subjects[place]));
            }
        }
        check
    }

    fn subject(&self, place: usize, number: usize) -> Subject {
        Subject::of(self.seed).and(place).and(number)
    }

    fn keep(&mut self, permit: Option<Permit>, ticket: Ticket) {
        let Some(permit) = permit else { return };
        if self.permits.len() == PERMITS {
            self.permits.swap_remove(self.random.usize(..PERMITS));
        }
        self.permits.push((permit, ticket));
    }

    async fn refund(&mut self, coverage: &mut Coverage) {
        if self.permits.is_empty() {
            return;
        }
        let (permit, ticket) = self.permits.swap_remove(self.random.usize(..self.permits.len()));
        let expected = self.model.refund(&ticket, self.now_us);
        coverage.met(if expected { "refunded" } else { "refunded too late" });
        self.told.note(self.now_us, Act::Refund(ticket, expected));
        let refunded = permit.refund().await.expect("the backend answers");
        assert!(refunded == expected, "the model says {expected}, the limiter {refunded}\n{}", self.told);
    }

    /// Forgets subjects. Whoever gives back a permit from before may take back another call's.
    async fn reset(&mut self, coverage: &mut Coverage) {
        let (version, call) = self.call();
        self.model.reset(&call);
        self.permits.clear();
        coverage.met("reset");
        self.told.note(self.now_us, Act::Reset(call.subjects));
        let subject = self.subject(0, call.subjects[0]);
        self.check(version, &call, &subject).reset_all().await.expect("the backend answers");
    }

    /// Bans a subject by hand, or ends its ban.
    async fn ban(&mut self, coverage: &mut Coverage) {
        let (version, call) = self.call();
        let Some(ban) = self.versions[version].policy.ban() else { return };
        let duration = *self.random.choice([&Duration::ZERO, &ban.duration(), &ban.within()]).unwrap();
        self.model.ban(&call, duration, self.now_us);
        self.banned_by_hand |= !duration.is_zero();
        coverage.met(if duration.is_zero() { "ban ended by hand" } else { "banned by hand" });
        self.told.note(self.now_us, Act::Ban(call.subjects[0], duration));
        let subject = self.subject(0, call.subjects[0]);
        let check = self.check(version, &call, &subject);
        if duration.is_zero() { check.unban().await } else { check.ban(duration).await }.expect("the backend answers");
    }

    /// Overrides the rules of all subjects or of one, or clears that.
    async fn override_rules(&mut self, coverage: &mut Coverage) {
        let subject = self.random.bool().then(|| self.random.usize(..SUBJECTS[0]));
        let rules = self.random.bool().then(|| self.random.choice(&self.overrides).unwrap().clone());
        coverage.met("override changed");
        self.put_override(subject, rules).await;
    }

    async fn put_override(&mut self, subject: Option<usize>, rules: Option<Vec<Rule>>) {
        let limiter = &self.stage.limiter;
        self.model.override_rules(subject, rules.clone());
        self.told.note(self.now_us, Act::Override(subject, rules.clone()));
        let subject = subject.map(|number| self.subject(0, number));
        let mut builder = limiter.override_policy("model").allow_unknown();
        if let Some(subject) = &subject {
            builder = builder.subject(subject);
        }
        let done = match rules {
            Some(rules) => builder.rules(rules).set().await,
            None => builder.clear().await.map(drop),
        };
        done.expect("the backend answers");
    }
}
