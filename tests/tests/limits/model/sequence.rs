//! A sequence of calls, refunds, resets, bans and overrides at chosen instants, made to a limiter and to the model at once.

mod administration;
mod choices;
mod permits;

use std::cell::Cell;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tallygate::testing::ManualClock;
use tallygate::{Check, Limiter, Permit, Rule, Subject};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::model::{Answer, Call, Costs, Drops, Model, Ticket, UNITS, Verdict};

pub(crate) use self::choices::{Choices, choices};
use crate::model::answers::answer;
use crate::model::coverage::Coverage;
use crate::model::policies::{self, Concurrency, LABELS, Version};
use crate::model::transcript::{Act, Transcript};

/// When some of them begin: in 2200, when the times need as many bits as they ever will.
const LATE_US: u64 = 7_258_118_400_000_000 - 7;
/// How many subjects there are in each place of a call, the main one first.
const SUBJECTS: [usize; 3] = [4, 2, 1];
/// A limiter and its clock.
pub(crate) struct Stage {
    pub(crate) limiter: Limiter,
    pub(crate) clock: ManualClock,
    /// How many times its largest count a log holds here: see [`Model::new`].
    pub(crate) drops: Drops,
    /// Whether concurrent calls are decided in their order.
    pub(crate) keeps_order: bool,
    /// Whether all subjects of a sequence are in one slot of a cluster.
    pub(crate) is_tagged: bool,
    /// How many sequences were played here. Each has subjects of its own.
    pub(crate) played: Cell<u64>,
}

/// The state of a sequence.
struct Sequence<'a> {
    stage: &'a Stage,
    random: Rng,
    /// The number of the sequence on its stage.
    number: u64,
    versions: Vec<Version>,
    running: Concurrency,
    /// Rules that sometimes override those of the versions.
    overrides: Vec<Vec<Rule>>,
    model: Model,
    /// Whether the clock is set back now and then. Memory drops expired tallies when a new subject comes, which the model
    /// does not know, and after the clock is set back it would matter. So in such a sequence all subjects are introduced at
    /// the beginning, and none is reset.
    sets_back: bool,
    /// Whether a subject was banned by hand.
    banned_by_hand: bool,
    start_us: u64,
    now_us: u64,
    /// The wait that the last denial reported.
    wait_us: u64,
    permits: Vec<(Permit, Ticket)>,
    /// Whether the calls of this step ask for permits that can be given back. Others take a shorter path in memory.
    keeps_permits: bool,
    transcript: Transcript,
}

/// Plays a sequence, with rules that remember for no less than `shortest`.
///
/// # Errors
///
/// The limiter differs from the model: how, and all that happened before.
pub(crate) async fn play(
    stage: &Stage,
    choices: &Choices,
    shortest: Duration,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let mut sequence = Sequence::new(stage, choices.set_up, shortest);
    let result = sequence.run(&choices.steps, coverage).await;
    let result = result.map_err(|difference| format!("{difference}\n{}", sequence.transcript));
    for subject in [None].into_iter().chain((0..SUBJECTS[0]).map(Some)) {
        sequence.put_override(subject, None).await;
    }
    result
}

impl<'a> Sequence<'a> {
    fn new(stage: &'a Stage, set_up: u64, shortest: Duration) -> Self {
        let mut random = Rng::with_seed(set_up);
        let sets_back = random.bool();
        let is_introduction_admitted = sets_back && stage.drops == Drops::AtOnce;
        // Nodes that decide parts of a call stand still each by itself.
        let is_one = is_introduction_admitted || sets_back && !stage.keeps_order && !stage.is_tagged;
        let subjects = if is_one || random.bool() { 1 } else { SUBJECTS.len() };
        let running = if !sets_back && random.u8(0..3) == 0 { Concurrency::Limited } else { Concurrency::Unlimited };
        let versions = policies::versions(&mut random, shortest, subjects, running);
        // Whether a call is over shows in the reports of the policy itself.
        let overrides = if running == Concurrency::Limited { 0 } else { random.usize(..3) };
        let overrides = (0..overrides).map(|_| policies::overriding(&mut random, shortest, &versions[0]));
        let is_open = |rules: &Vec<Rule>| rules.iter().all(|rule| rule.count() > 0);
        let overrides = overrides.filter(|rules| !is_introduction_admitted || is_open(rules)).collect();
        let start_us = if random.u8(0..8) == 0 { LATE_US } else { START_US };
        let number = stage.played.get();
        stage.played.set(number + 1);
        Self {
            stage,
            sets_back,
            random,
            number,
            transcript: Transcript::new(&versions),
            versions,
            running,
            overrides,
            model: Model::new(stage.drops),
            banned_by_hand: false,
            start_us,
            now_us: start_us,
            wait_us: 0,
            permits: Vec::new(),
            keeps_permits: running == Concurrency::Limited,
        }
    }

    async fn run(&mut self, steps: &[u64], coverage: &mut Coverage) -> Result<(), String> {
        self.introduce_subjects(coverage).await?;
        for seed in steps {
            self.random = Rng::with_seed(*seed);
            self.step(coverage).await?;
        }
        Ok(())
    }
}

impl Sequence<'_> {
    async fn introduce_subjects(&mut self, coverage: &mut Coverage) -> Result<(), String> {
        let overrides = self.overrides.clone().into_iter().map(Some);
        for rules in overrides.chain([None]) {
            self.put_override(None, rules).await;
            let calls = (0..SUBJECTS[0]).map(|number| {
                let subjects = [number, number % SUBJECTS[1], 0];
                let plan = self.versions[0].plan.clone();
                (0, Call { plan, subjects, costs: Costs::all(1), report: true, peek: false })
            });
            let calls = calls.collect();
            self.call(calls, coverage).await?;
        }
        Ok(())
    }

    async fn step(&mut self, coverage: &mut Coverage) -> Result<(), String> {
        let then_us = self.another_time();
        coverage.met_if("clock set back", then_us < self.now_us);
        self.now_us = then_us;
        self.stage.clock.set(time(then_us));
        self.keeps_permits = self.running == Concurrency::Limited || self.random.bool();
        match self.random.u8(0..24) {
            0..4 => self.refund(coverage).await?,
            8 | 9 if self.running == Concurrency::Limited && !self.permits.is_empty() => {
                let (permit, ticket) = self.permits.swap_remove(self.random.usize(..self.permits.len()));
                drop(permit);
                self.end(ticket).await?;
            }
            4 if !self.sets_back => self.reset(coverage).await?,
            5 => self.ban(coverage).await,
            6 | 7 if !self.overrides.is_empty() => self.override_rules(coverage).await,
            _ => {
                let calls = (0..self.random.usize(1..4)).map(|_| self.any_call()).collect();
                self.call(calls, coverage).await?;
            }
        }
        Ok(())
    }

    /// A call of a random version, with its number.
    fn any_call(&mut self) -> (usize, Call) {
        let version = self.random.usize(..self.versions.len());
        let costs = self.costs(version);
        let subjects = SUBJECTS.map(|subjects| self.random.usize(..subjects));
        let plan = self.versions[version].plan.clone();
        let call = Call { plan, subjects, costs, report: self.random.u8(0..3) == 0, peek: self.random.u8(0..8) == 0 };
        (version, call)
    }

    /// Makes concurrent calls, in their order. Those whose order is open are made one after the other.
    async fn call(&mut self, calls: Vec<(usize, Call)>, coverage: &mut Coverage) -> Result<(), String> {
        let plain = calls.iter().filter(|(_, call)| self.model.is_plain(call)).count();
        let is_overridden = calls.iter().any(|(_, call)| self.model.overridden(call) != (false, false));
        let are_alike = calls.windows(2).all(|pair| (pair[0].0, pair[0].1.costs) == (pair[1].0, pair[1].1.costs));
        let is_in_order = plain == 0 || plain == calls.len() && are_alike && !is_overridden;
        if self.stage.keeps_order && is_in_order {
            return self.call_at_once(calls, coverage).await;
        }
        for call in calls {
            self.call_at_once(vec![call], coverage).await?;
        }
        Ok(())
    }

    async fn call_at_once(&mut self, calls: Vec<(usize, Call)>, coverage: &mut Coverage) -> Result<(), String> {
        self.stage.clock.set(time(self.now_us));
        let mut expected = Vec::new();
        for (version, call) in &calls {
            let answer = self.model.decide(call, self.now_us);
            let ticket = self.model.ticket(call);
            self.cover(coverage, call, &answer);
            match answer.verdict {
                Verdict::Denied(_, Some(wait)) | Verdict::Banned(Some(wait)) => {
                    self.wait_us = u64::try_from(wait).unwrap();
                }
                _ => {}
            }
            self.transcript.note(self.now_us, Act::Call(*version, call.clone(), answer.clone()));
            expected.push((answer, ticket));
        }
        let answers = join_all(calls.iter().map(|(version, call)| self.answer(*version, call))).await;
        for ((expected, ticket), (answer, permit)) in expected.into_iter().zip(answers) {
            if answer != expected {
                return Err(format!("the model answers {expected:?}, the limiter {answer:?}"));
            }
            self.keep(permit, ticket).await?;
        }
        Ok(())
    }

    fn cover(&self, coverage: &mut Coverage, call: &Call, answer: &Answer) {
        let (by_one, by_all) = self.model.overridden(call);
        let rules = self.model.rules(call);
        let is_closed = (by_one || by_all) && rules.iter().any(|(_, rule)| rule.count() == 0);
        coverage.note(call, &rules, answer);
        coverage.met_if("overridden", by_one || by_all);
        coverage.met_if("overridden for one subject", by_one);
        coverage.met_if("rule closed", is_closed);
        coverage.met_if("rule closed and reported", is_closed && call.report);
        let is_banned = matches!(answer.verdict, Verdict::Banned(_));
        coverage.met_if("banned by denials", is_banned && !self.banned_by_hand);
    }

    async fn answer(&self, version: usize, call: &Call) -> (Answer, Option<Permit>) {
        let subject = self.subject(0, call.subjects[0]);
        let mut check = self.check(version, call, &subject).cost(call.costs.calls);
        for (unit, cost) in UNITS.iter().zip(call.costs.units) {
            let is_known = || self.versions[version].policy.units().any(|known| known == *unit);
            if let Some(cost) = cost.filter(|_| is_known()) {
                check = check.cost_of(unit, cost);
            }
        }
        if self.keeps_permits {
            check = check.refundable();
        }
        if call.report {
            check = check.report();
        }
        if call.peek {
            check = check.peek();
        }
        answer(check).await
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
        if !self.stage.is_tagged {
            return Subject::of(self.number).and(place).and(number);
        }
        let tag = self.stage.limiter.subject().text("{").value(self.number).text("}:");
        tag.value(place).text(":").value(number).build()
    }
}
