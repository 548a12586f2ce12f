//! Refunds, several subjects and waiters that leave, all at once: on every backend, with callers on several threads.
//!
//! Each call is recorded with the time before it was made and the time after its answer, between which it was decided; a
//! refund likewise. What was surely counted at some instant is at most the rule's count, whatever the order was.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tallygate::{Limiter, Permit, Policy, Rule, RuleStatus, Subject, TokenBucket};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::Server;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const CALLERS: usize = 16;
const HOUR: Duration = Duration::from_secs(3_600);
/// Nothing but a deadlock takes that long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clocks of one machine may differ by so little in a window.
const DRIFT: Duration = Duration::from_micros(50);

macro_rules! every_backend {
    ($($behaviour:ident),* $(,)?) => {
        mod in_memory {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $behaviour() {
                    super::$behaviour(tallygate::Limiter::in_memory()).await;
                }
            )*
        }
        mod in_redis {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $behaviour() {
                    let server = super::Server::start();
                    super::$behaviour(server.limiter().await).await;
                }
            )*
        }
        mod in_cluster {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $behaviour() {
                    let cluster = super::Cluster::shared();
                    super::$behaviour(cluster.own_limiter().await).await;
                }
            )*
        }
    };
}

every_backend!(
    refunds_among_hits_that_expire_let_no_window_exceed_its_count,
    whatever_was_not_given_back_stays_counted_and_nothing_else,
    subjects_that_are_taken_in_both_orders_are_decided_in_time_and_never_too_often,
    waiters_that_leave_at_random_leave_nothing_behind,
);

/// One admitted call, and when it was given back, if it was.
#[derive(Clone, Copy, Debug)]
struct Call {
    asked: Instant,
    answered: Instant,
    cost: u64,
    given_back: Option<Instant>,
}

impl Call {
    /// Whether it was surely counted when the other was decided.
    fn weighs_on(&self, other: &Self, per: Duration) -> bool {
        let is_before = self.answered <= other.asked;
        let is_within = other.answered + DRIFT < self.asked + per;
        is_before && is_within && self.given_back.is_none_or(|given_back| given_back >= other.answered)
    }
}

async fn permit(limiter: &Limiter, policy: &Policy, subject: &Subject, cost: u64) -> Option<Permit> {
    limiter.check(policy, subject).cost(cost).refundable().await.unwrap().into_result().ok()
}

/// Calls and gives back at once, now and then later, when it may be out of its window.
async fn call_and_give_back(limiter: Limiter, policy: Policy, subject: Subject, per: Duration) -> Vec<Call> {
    let (began, mut history) = (Instant::now(), Vec::new());
    // On a busy machine, the time may be over before there was much to look at.
    while began.elapsed() < 12 * per || history.len() < 6 {
        let (asked, cost) = (Instant::now(), fastrand::u64(1..4));
        let Some(permit) = permit(&limiter, &policy, &subject, cost).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let answered = Instant::now();
        let given_back = if fastrand::bool() {
            if fastrand::bool() {
                sleep(per.mul_f64(fastrand::f64() * 1.2)).await;
            }
            let given_back = Instant::now();
            permit.refund().await.unwrap();
            Some(given_back)
        } else {
            None
        };
        history.push(Call { asked, answered, cost, given_back });
    }
    history
}

async fn refunds_among_hits_that_expire_let_no_window_exceed_its_count(limiter: Limiter) {
    let (count, per) = (12, Duration::from_millis(30));
    let policy = Policy::builder("expiring").rule(Rule::sliding_window(count, per)).build().unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(call_and_give_back(limiter.clone(), policy.clone(), Subject::of("s"), per));
    }
    let history = callers.join_all().await.concat();
    let given_back = history.iter().filter(|call| call.given_back.is_some()).count();
    assert!(given_back > 20 && history.len() - given_back > 20, "{given_back} of {}", history.len());
    for call in &history {
        let weight: u64 =
            history.iter().filter(|earlier| earlier.weighs_on(call, per)).map(|earlier| earlier.cost).sum();
        assert!(weight + call.cost <= count, "{weight} and {} within {per:?}: {call:?}", call.cost);
    }
}

async fn whatever_was_not_given_back_stays_counted_and_nothing_else(limiter: Limiter) {
    const COUNT: u64 = 400;
    let bucket = TokenBucket::new(24 * HOUR).with_capacity(COUNT).with_reset_after(1_000 * HOUR);
    let rules = [
        Rule::sliding_window(COUNT, HOUR),
        Rule::sliding_counter(COUNT, 1_000 * HOUR),
        Rule::fixed_window(COUNT, 2 * HOUR),
        Rule::from_bucket(1, bucket),
    ];
    let policy = Policy::builder("kept").rules(rules).build().unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        callers.spawn(async move {
            let mut kept = 0;
            for _ in 0..60 {
                let cost = fastrand::u64(1..6);
                let Some(permit) = permit(&limiter, &policy, &Subject::of("s"), cost).await else { continue };
                if fastrand::u8(0..10) < 9 {
                    assert!(permit.refund().await.unwrap(), "nothing of it is over");
                } else {
                    kept += cost;
                }
            }
            kept
        });
    }
    let kept: u64 = callers.join_all().await.into_iter().sum();
    let peeked = limiter.peek(&policy, &Subject::of("s")).await.unwrap();
    let left: Vec<_> = peeked.report().iter().map(RuleStatus::remaining).collect();
    assert_eq!(left, [COUNT - kept; 4]);
}

/// Two policies of one name count the same subjects, each in its own order.
async fn subjects_that_are_taken_in_both_orders_are_decided_in_time_and_never_too_often(limiter: Limiter) {
    let (one, other) = (Rule::sliding_window(30, HOUR), Rule::fixed_window(20, HOUR));
    let ab = Policy::builder("order").rule_on("a", one.clone()).rule_on("b", other.clone()).build().unwrap();
    let ba = Policy::builder("order").rule_on("b", other).rule_on("a", one).build().unwrap();
    let together = Arc::new(Barrier::new(CALLERS));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (limiter, together) = (limiter.clone(), Arc::clone(&together));
        let policy = if caller % 2 == 0 { ab.clone() } else { ba.clone() };
        callers.spawn(async move {
            together.wait().await;
            let mut admitted = Vec::new();
            for _ in 0..200 {
                let (a, b) = (fastrand::u8(0..6), fastrand::u8(0..6));
                let everyone = Subject::everyone();
                let check = limiter.check(&policy, &everyone);
                let check = check.subject("a", &Subject::of(a)).subject("b", &Subject::of(b));
                let decided = timeout(PATIENCE, check.into_future()).await.expect("no deadlock").unwrap();
                if decided.is_allowed() {
                    admitted.push([("a", a), ("b", b)]);
                }
            }
            admitted
        });
    }
    let mut counted = HashMap::new();
    for subject in callers.join_all().await.into_iter().flatten().flatten() {
        *counted.entry(subject).or_insert(0) += 1;
    }
    let of = |label: &str| (0..6).map(|subject| counted[&(label, subject)]).collect::<Vec<u64>>();
    assert!(of("a").iter().all(|&calls| calls <= 30) && of("b").iter().all(|&calls| calls <= 20), "{counted:?}");
    // Every `b` is full, as all of them together admit less than any `a` would stop.
    assert_eq!(of("b").iter().sum::<u64>(), 6 * 20, "{counted:?}");
    assert_eq!(of("a").iter().sum::<u64>(), 6 * 20, "all or nothing");
}

async fn waiters_that_leave_at_random_leave_nothing_behind(limiter: Limiter) {
    let (count, per) = (4, Duration::from_millis(25));
    let policy = Policy::builder("leaving").rule(Rule::sliding_window(count, per)).build().unwrap();
    let subject = Subject::of("s");
    let mut callers = JoinSet::new();
    for _ in 0..100 {
        let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
        callers.spawn(async move {
            let patience = Duration::from_micros(fastrand::u64(0..600_000));
            let decided = timeout(patience, limiter.acquire(&policy, &subject).into_future()).await.ok()?;
            assert!(decided.unwrap().is_allowed());
            Some(())
        });
    }
    let stayed = callers.join_all().await.into_iter().flatten().count();
    assert!((1..100).contains(&stayed), "{stayed} of them stayed");
    // Whoever comes now finds no line but the window alone.
    for _ in 0..3 * count {
        timeout(PATIENCE, limiter.acquire(&policy, &subject).into_future())
            .await
            .expect("it is let in")
            .unwrap()
            .into_result()
            .unwrap();
    }
    loop {
        let peeked = limiter.peek(&policy, &subject).await.unwrap();
        let report = &peeked.report()[0];
        if report.remaining() == count {
            break;
        }
        assert!(report.reset() <= per, "no hit is from the future");
        sleep(report.reset()).await;
    }
}
