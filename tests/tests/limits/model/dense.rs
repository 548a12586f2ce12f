//! One subject that calls again and again, so that its log is long: so dense that calls share entries, or of calls whose costs
//! differ as those of tokens do.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;
use tallygate::{Permit, Policy, Rule, Subject};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::model::{Call, Costs, Model, Plan, Ticket, Used};
use tallygate_rules::MAX_LOG_ENTRIES;

use crate::model::answers::answer;
use crate::model::sequence::Stage;

/// What a subject does.
struct Traffic {
    name: &'static str,
    /// The longest window.
    reach_us: u64,
    rules: fn(&mut Rng) -> Vec<Rule>,
    cost: fn(&mut Rng) -> u64,
    /// The longest time between two calls.
    gap_us: u64,
    steps: usize,
    /// One in so many permits that are given back is settled. The others are refunded.
    settled: u8,
}

/// In a dense log, calls of the same sixteen microseconds share. Admitted calls are at least two microseconds apart.
const DENSE: Traffic = Traffic {
    name: "dense",
    reach_us: 1_000_000,
    rules: |random| {
        let (count, reach) = (random.u64(76_000..84_000), Duration::from_secs(1));
        let quarter = Rule::sliding_window(count * 26 / 100, reach / 4);
        vec![Rule::sliding_window(count, reach), quarter, Rule::duplicate(Duration::from_micros(2))]
    },
    cost: |random| if random.u8(0..8) == 0 { random.u64(1..9) } else { 1 },
    gap_us: 24,
    steps: 2 * MAX_LOG_ENTRIES,
    settled: 8,
};

/// Some hundred calls count in the longest window, and some thirty in the shortest.
const TOKENS: Traffic = Traffic {
    name: "tokens",
    reach_us: 600_000_000,
    rules: |random| {
        let windows = [(900_000..1_100_000, 600), (150_000..250_000, 60), (60_000..90_000, 30)];
        windows.map(|(count, seconds)| Rule::sliding_window(random.u64(count), Duration::from_secs(seconds))).into()
    },
    cost: |random| random.u64(1..=4_000),
    gap_us: 1_600_000,
    steps: 1_500,
    settled: 2,
};

/// The most permits that are kept to be given back. Some of them are too far behind.
const PERMITS: usize = 1_500;

/// Somebody who calls often, and takes calls back.
struct Caller<'a> {
    stage: &'a Stage,
    traffic: &'static Traffic,
    random: Rng,
    versions: [(Policy, Plan); 2],
    model: Model,
    subject: Subject,
    now_us: u64,
    /// Latest first.
    permits: VecDeque<(Permit, Ticket)>,
    /// The times of the calls within the longest window, oldest first.
    admitted_us: VecDeque<u64>,
    counts: Counts,
}

/// How often a caller met what.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The most admitted calls in one window.
    pub(crate) in_window: usize,
    pub(crate) denied: u64,
    pub(crate) refunded: u64,
    /// Refunds that gave nothing back.
    pub(crate) unrefunded: u64,
    /// Settlements that changed what is counted.
    pub(crate) settled: u64,
}

/// Decides so many calls that their log becomes dense, with refunds between them; a store has to decide as the model does.
pub(crate) async fn play_densely(stage: &Stage, seed: u64) -> Counts {
    play(stage, &DENSE, seed).await
}

/// Decides calls that cost from 1 to 4,000, and gives parts of many of them back; a store has to decide as the model does.
pub(crate) async fn play_tokens(stage: &Stage, seed: u64) -> Counts {
    play(stage, &TOKENS, seed).await
}

async fn play(stage: &Stage, traffic: &'static Traffic, seed: u64) -> Counts {
    let mut random = Rng::with_seed(seed);
    let mut caller = Caller {
        stage,
        traffic,
        versions: versions(&mut random, traffic),
        random,
        model: Model::new(stage.drops),
        subject: Subject::of(traffic.name).and(seed),
        now_us: START_US,
        permits: VecDeque::new(),
        admitted_us: VecDeque::new(),
        counts: Counts::default(),
    };
    for _ in 0..traffic.steps {
        stage.clock.set(time(caller.now_us));
        caller.call().await;
        if caller.random.u8(0..4) == 0 {
            caller.refund().await;
        }
        caller.now_us += caller.random.u64(0..traffic.gap_us);
    }
    caller.counts
}

/// Two versions of a policy, with other counts.
fn versions(random: &mut Rng, traffic: &Traffic) -> [(Policy, Plan); 2] {
    let rules = (traffic.rules)(random);
    let other = rules[0].count() * 96 / 100;
    let policy = Policy::builder(traffic.name).rules(rules).build().unwrap();
    let other = policy.with_counts([other]);
    [policy, other].map(|policy| {
        let plan = Plan::new(policy.rules().iter().map(|rule| (0, rule.clone())).collect(), None);
        (policy, plan)
    })
}

impl Caller<'_> {
    async fn call(&mut self) {
        let random = &mut self.random;
        let (policy, plan) = random.choice(&self.versions).unwrap();
        let cost = (self.traffic.cost)(random);
        let (costs, report) = (Costs::of_calls(cost), random.u8(0..16) == 0);
        let call = Call { plan: plan.clone(), subjects: [0; 3], costs, report, peek: false };
        let expected = self.model.decide(&call, self.now_us);
        let ticket = self.model.ticket(&call);
        let check = self.stage.limiter.check(policy, &self.subject).cost(cost).refundable();
        let (answer, permit) = answer(if call.report { check.report() } else { check }).await;
        assert_eq!(answer, expected, "at {}", self.now_us);
        match permit {
            Some(permit) => self.note(permit, ticket),
            None => self.counts.denied += 1,
        }
    }

    fn note(&mut self, permit: Permit, ticket: Ticket) {
        self.permits.push_front((permit, ticket));
        self.permits.truncate(PERMITS);
        self.admitted_us.push_back(self.now_us);
        while self.admitted_us.front().is_some_and(|call_us| call_us + self.traffic.reach_us <= self.now_us) {
            self.admitted_us.pop_front();
        }
        self.counts.in_window = self.counts.in_window.max(self.admitted_us.len());
    }

    async fn refund(&mut self) {
        let farthest = if self.random.bool() { PERMITS } else { 9 };
        let behind = self.random.usize(..farthest);
        let Some((permit, ticket)) = self.permits.remove(behind) else { return };
        if self.random.u8(0..self.traffic.settled) == 0 {
            let used = self.random.u64(1..=2 * ticket.costs().calls);
            let is_settled = permit.settle(used).await.expect("the backend answers");
            let expected = self.model.settle(&ticket, &Used { calls: Some(used), ..Used::default() }, self.now_us);
            assert_eq!(is_settled, expected, "at {}: {ticket} settled for {used}", self.now_us);
            self.counts.settled += u64::from(is_settled);
            return;
        }
        let is_refunded = permit.refund().await.expect("the backend answers");
        assert_eq!(is_refunded, self.model.refund(&ticket, self.now_us), "at {}: refund of {ticket}", self.now_us);
        *(if is_refunded { &mut self.counts.refunded } else { &mut self.counts.unrefunded }) += 1;
    }
}
