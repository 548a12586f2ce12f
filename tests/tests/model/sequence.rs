//! A sequence of calls at chosen instants, put to a limiter and to the model at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tallygate::{Algorithm, Decision, Limiter, Policy, Rule, Schedule, Subject};
use tallygate_tests::clocked::START_US;
use tallygate_tests::model::{Answer, Tally};

use crate::coverage::Coverage;
use crate::policies;

const STEPS: usize = 80;
const SUBJECTS: usize = 4;
/// How many of the last calls a failure shows.
const SHOWN: usize = 40;

/// A limiter and the clock that it goes by.
pub(crate) struct Stage {
    pub(crate) limiter: Limiter,
    pub(crate) clock: Arc<AtomicU64>,
}

/// A call, with what the model answers to it.
#[derive(Clone, Debug)]
struct Call {
    now_us: u64,
    subject: usize,
    version: usize,
    cost: u64,
    report: bool,
    expected: Answer,
}

/// The state of a sequence.
struct Sequence<'a> {
    stage: &'a Stage,
    random: Rng,
    seed: u64,
    versions: Vec<Policy>,
    subjects: [Subject; SUBJECTS],
    tallies: [Tally; SUBJECTS],
    now_us: u64,
    /// How long the last denial told to wait.
    wait_us: u64,
    calls: Vec<Call>,
}

/// Plays the sequence of that seed, with rules that remember for no less than `shortest`.
///
/// # Panics
///
/// When the limiter does not say what the model says.
pub(crate) async fn play(stage: &Stage, seed: u64, shortest: Duration, coverage: &mut Coverage) {
    let mut random = Rng::with_seed(seed);
    let versions = policies::versions(&mut random, shortest);
    let subjects = std::array::from_fn(|subject| Subject::of(seed).and(subject));
    let mut sequence = Sequence {
        stage,
        random,
        seed,
        versions,
        subjects,
        tallies: Default::default(),
        now_us: START_US,
        wait_us: 0,
        calls: Vec::new(),
    };
    sequence.introduce_everybody(coverage).await;
    for _ in 0..STEPS {
        sequence.step(coverage).await;
    }
}

impl Sequence<'_> {
    /// Tallies in memory that are over leave when a new subject comes, and where the clock is set back this is one way or
    /// the other. So nobody new comes later.
    async fn introduce_everybody(&mut self, coverage: &mut Coverage) {
        let calls = (0..SUBJECTS).map(|subject| (subject, 0, 1, true));
        self.call_at_once(calls.collect(), coverage).await;
    }

    async fn step(&mut self, coverage: &mut Coverage) {
        let then_us = self.another_time();
        coverage.times_set_back += u64::from(then_us < self.now_us);
        self.now_us = then_us;
        let calls = (0..self.random.usize(1..4)).map(|_| {
            let version = self.random.usize(..self.versions.len());
            let cost = self.cost(version);
            (self.random.usize(..SUBJECTS), version, cost, self.random.u8(0..3) == 0)
        });
        let calls = calls.collect();
        self.call_at_once(calls, coverage).await;
    }

    /// Makes calls that are under way at once, in their order.
    async fn call_at_once(&mut self, calls: Vec<(usize, usize, u64, bool)>, coverage: &mut Coverage) {
        self.stage.clock.store(self.now_us, Ordering::Relaxed);
        let first = self.calls.len();
        for (subject, version, cost, report) in calls {
            let rules = self.versions[version].rules();
            let expected = self.tallies[subject].decide(rules, cost, report, self.now_us);
            coverage.note(rules, cost, &expected);
            if let Some((_, Some(wait))) = expected.denied {
                self.wait_us = u64::try_from(wait).unwrap();
            }
            self.calls.push(Call { now_us: self.now_us, subject, version, cost, report, expected });
        }
        let answers = join_all(self.calls[first..].iter().map(|call| self.answer(call))).await;
        for (index, answer) in (first..).zip(answers) {
            let expected = &self.calls[index].expected;
            assert!(answer == *expected, "the model says {expected:?}, the limiter {answer:?}\n{}", self.told(index));
        }
    }

    async fn answer(&self, call: &Call) -> Answer {
        let check =
            self.stage.limiter.check(&self.versions[call.version], &self.subjects[call.subject]).cost(call.cost);
        let decision = if call.report { check.report().await } else { check.await }.expect("the backend answers");
        let standings =
            decision.report().iter().map(|rule| (rule.remaining().into(), rule.reset().as_micros())).collect();
        let denied = match decision {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => {
                Some((denial.rule().unwrap().index(), denial.retry_after().map(|wait| wait.as_micros())))
            }
        };
        Answer { denied, standings }
    }

    fn rule(&mut self) -> Rule {
        let version = self.random.usize(..self.versions.len());
        self.random.choice(self.versions[version].rules()).unwrap().clone()
    }

    fn cost(&mut self, version: usize) -> u64 {
        let rules = self.versions[version].rules();
        let limit = |rule: &Rule| rule.capacity().unwrap_or(rule.count());
        let (rule, least) = (self.random.choice(rules).unwrap(), rules.iter().map(limit).min().unwrap());
        match self.random.u8(0..16) {
            0 => 0,
            1 => limit(rule),
            2 => limit(rule) + 1,
            3 => least,
            4 => self.random.u64(0..=limit(rule)),
            5 | 6 => self.random.u64(0..=least),
            7 | 8 => self.random.u64(1..4),
            9 if self.random.u8(0..8) == 0 => u64::MAX,
            _ => 1,
        }
    }

    fn another_time(&mut self) -> u64 {
        let rule = self.rule();
        let now_us = self.now_us;
        let (per_us, off) = (self.period_us(&rule), self.random.u64(0..3));
        let ahead = |us: u64| now_us + us - 1 + off;
        match self.random.u8(0..32) {
            0..6 => now_us,
            6..9 => now_us + 1,
            9..13 => ahead(per_us),
            13..17 => ahead(self.wait_us.max(1)),
            // The end of a slot or of a scheduled window.
            17..19 => ahead(per_us - now_us % per_us),
            19..26 => now_us + self.random.u64(..per_us),
            26 => now_us + self.random.u64(..5 * per_us),
            27 => now_us - 1,
            28 | 29 => now_us - self.random.u64(..per_us),
            30 => now_us - per_us - 1 + off,
            _ => START_US.min(now_us) - self.random.u64(..5 * per_us),
        }
    }

    fn period_us(&self, rule: &Rule) -> u64 {
        let next = |schedule: &Schedule, us| schedule.next_tick(us).unwrap() - self.now_us;
        match rule.algorithm() {
            Algorithm::Cron { schedule } => next(schedule, self.now_us),
            _ => u64::try_from(rule.per().unwrap().as_micros()).unwrap(),
        }
    }

    /// Tells the calls of one subject up to that one.
    fn told(&self, index: usize) -> String {
        let subject = self.calls[index].subject;
        let calls: Vec<_> = self.calls[..=index].iter().filter(|call| call.subject == subject).collect();
        let calls: Vec<_> = calls[calls.len().saturating_sub(SHOWN)..].iter().map(ToString::to_string).collect();
        let versions: Vec<_> = self.versions.iter().map(|policy| format!("{:#?}", policy.rules())).collect();
        format!(
            "TALLYGATE_TEST_SEED={} plays it again; the policy's versions are\n{}\nand the subject's calls\n{}",
            self.seed,
            versions.join("\n"),
            calls.join("\n"),
        )
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = i128::from(self.now_us) - i128::from(START_US);
        let Self { version, cost, report, expected, .. } = self;
        write!(f, "at {at:+} µs: version {version}, cost {cost}, report {report}: {expected:?}")
    }
}
