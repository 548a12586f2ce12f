//! Calls whose subjects are in several slots.

use std::sync::Arc;
use std::time::Duration;

use tallygate::{Check, Limiter, Policy, Rule, RuleStatus, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::server::{Server, connected, patient};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(60);

/// A policy of calls that two subjects count: the caller's own, and its network's.
fn policy(own: u64, network: u64) -> Policy {
    let builder = Policy::builder("several").rule(Rule::sliding_window(own, HOUR));
    builder.rule_on("network", Rule::sliding_window(network, HOUR)).build().unwrap()
}

/// A limiter, the policy, and a network whose tally is on another node than that of most callers.
#[derive(Clone)]
struct Several {
    limiter: Limiter,
    policy: Policy,
    network: Subject,
}

impl Several {
    async fn of(cluster: &Cluster, prefix: &str, policy: Policy) -> Self {
        let limiter = connected(&patient().prefix(prefix), &cluster.url()).await;
        Self { limiter, policy, network: Subject::of("10.0.0.0/24") }
    }

    fn check<'a>(&'a self, caller: &'a Subject) -> Check<'a> {
        self.limiter.check(&self.policy, caller).subject("network", &self.network)
    }

    async fn is_admitted(&self, caller: &Subject) -> bool {
        self.check(caller).await.unwrap().is_allowed()
    }

    /// What is left of the caller's count and of the network's.
    async fn remaining(&self, caller: &Subject) -> [u64; 2] {
        let decision = self.check(caller).peek().report().await.unwrap();
        [0, 1].map(|rule| decision.report()[rule].remaining())
    }
}

fn callers(number: usize) -> Vec<Subject> {
    (0..number).map(|value| Subject::of("caller").and(value)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_that_one_subject_denies_takes_nothing_from_a_caller_of_the_other() {
    let cluster = Cluster::shared();
    let count = cases(100, 2_000);
    let honest = Several::of(&cluster, "flood", policy(count, 1_000_000)).await;
    let closed = Several { policy: policy(count, 1), network: Subject::of("closed"), ..honest.clone() };
    assert!(closed.is_admitted(&Subject::of("first")).await);
    let somebody = callers(1).remove(0);
    let mut flood = JoinSet::new();
    for _ in 0..16 {
        let (closed, somebody) = (closed.clone(), somebody.clone());
        flood.spawn(async move {
            loop {
                assert!(!closed.is_admitted(&somebody).await);
            }
        });
    }
    for _ in 0..count {
        assert!(honest.is_admitted(&somebody).await, "nobody else was admitted");
    }
    assert!(!honest.is_admitted(&somebody).await);
    flood.shutdown().await;
    assert_eq!(honest.remaining(&somebody).await, [0, 1_000_000 - count]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_come_together_are_admitted_exactly_as_often_as_the_subject_that_they_share_allows() {
    let cluster = Cluster::shared();
    let several = Several::of(&cluster, "shared", policy(1_000, 100)).await;
    let callers = callers(64);
    let together = Arc::new(Barrier::new(callers.len()));
    let mut tasks = JoinSet::new();
    for caller in callers.clone() {
        let (several, together) = (several.clone(), Arc::clone(&together));
        tasks.spawn(async move {
            together.wait().await;
            let mut admitted = 0;
            for _ in 0..5 {
                admitted += u64::from(several.is_admitted(&caller).await);
            }
            admitted
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u64>(), 100);
    let mut counted = 0;
    for caller in &callers {
        let [own, network] = several.remaining(caller).await;
        assert_eq!(network, 0);
        counted += 1_000 - own;
    }
    assert_eq!(counted, 100, "what lost a race was refunded");
}

/// Each round has callers and a network of its own.
#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_futures_are_dropped_are_counted_by_all_of_their_subjects_or_by_none() {
    let cluster = Cluster::shared();
    for round in 0..cases(5, 100) {
        let mut several = Several::of(&cluster, "dropped", policy(8, 60)).await;
        several.network = Subject::of("network").and(round);
        let callers: Vec<_> = (0..16).map(|value| Subject::of(round).and(value)).collect();
        let mut tasks = JoinSet::new();
        for caller in callers.iter().cycle().take(64) {
            let (several, caller) = (several.clone(), caller.clone());
            tasks.spawn(async move {
                let (mut admitted, mut dropped) = (0, 0);
                for _ in 0..10 {
                    let patience = Duration::from_micros(fastrand::u64(0..5_000));
                    match timeout(patience, several.is_admitted(&caller)).await {
                        Ok(is_admitted) => admitted += u64::from(is_admitted),
                        Err(_) => dropped += 1,
                    }
                }
                (admitted, dropped)
            });
        }
        let called = tasks.join_all().await;
        let admitted: u64 = called.iter().map(|(admitted, _)| admitted).sum();
        let dropped: u64 = called.iter().map(|(_, dropped)| dropped).sum();
        let counted = async || {
            let (mut own, mut network) = (0, 0);
            for caller in &callers {
                let [own_left, network_left] = several.remaining(caller).await;
                own += 8 - own_left;
                network = 60 - network_left;
            }
            (own, network)
        };
        // What was charged for a call that was dropped may still be on its way back.
        let settled = async {
            loop {
                let (own, network) = counted().await;
                if own == network {
                    return own;
                }
            }
        };
        let own = timeout(PATIENCE, settled).await.expect("each call is counted by both subjects or by none");
        assert!((admitted..=admitted + dropped).contains(&own), "{own} of {admitted} and {dropped}");
        assert!(own <= 60, "{own}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_subjects_in_several_slots() {
    let cluster = Cluster::shared();
    let per = Duration::from_millis(300);
    let builder = Policy::builder("waiting").rule(Rule::sliding_window(1, per));
    let policy = builder.rule_on("network", Rule::sliding_window(2, per)).build().unwrap();
    let several = Several::of(&cluster, "waiting", policy).await;
    for caller in callers(6) {
        let decision = several.check(&caller).wait(30 * per).await.unwrap();
        assert!(decision.is_allowed(), "{decision:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_settled_on_each_of_its_nodes() {
    let cluster = Cluster::shared();
    for (caller, number) in callers(6).into_iter().zip(0..) {
        let mut several = Several::of(&cluster, "settled", policy(100, 200)).await;
        several.network = Subject::of("settled").and(number);
        let permit =
            async || several.check(&caller).cost(20).refundable().await.unwrap().into_result().expect("there is room");
        let [less, more, same] = [permit().await, permit().await, permit().await];
        assert!(less.settle(5).await.unwrap());
        assert_eq!(several.remaining(&caller).await, [55, 155]);
        assert!(more.settle(50).await.unwrap());
        assert_eq!(several.remaining(&caller).await, [25, 125]);
        assert!(!same.settle(20).await.unwrap());
        assert_eq!(several.remaining(&caller).await, [25, 125]);
    }
}

/// Two users and an organisation: calls and tokens of the user, tokens of the organisation.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_one_slot_of_a_call_in_several_is_asked_at_once() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let tokens = |count| Rule::sliding_window(count, HOUR).counting("tokens");
    let builder = Policy::builder("chat").rule(Rule::sliding_window(60, HOUR)).rule(tokens(100));
    let policy = builder.rule_on("org", tokens(150)).build().unwrap();
    let (user, org) = (Subject::of("alice"), Subject::of("acme"));
    let check = |tokens| limiter.check(&policy, &user).subject("org", &org).cost_of("tokens", tokens);
    let scripts = || cluster.masters().iter().map(|master| master.calls("evalsha")).sum::<usize>();
    let left = async || {
        let decision = check(0).peek().report().await.unwrap();
        decision.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>()
    };
    assert!(check(10).await.unwrap().is_allowed());
    let before = scripts();
    let permit = check(70).refundable().await.unwrap().into_result().unwrap();
    assert_eq!(scripts() - before, 4, "a peek and a charge in each of two slots");
    assert_eq!(left().await, [58, 20, 70]);
    let denial = check(30).await.unwrap().into_result().unwrap_err();
    assert_eq!(denial.rule().unwrap().position(), 1);
    assert!(permit.settle_units(&[("tokens", 20)]).await.unwrap());
    assert_eq!(left().await, [58, 70, 120]);

    let slot = cluster.slot_of("tallygate:chat/w1h:alice");
    let from = cluster.owner(slot);
    let to = cluster.masters().iter().find(|master| master.port() != from.port()).unwrap();
    cluster.begin_move(slot, to);
    Cluster::move_key(from, "tallygate:chat/w1h:alice", to);
    assert!(check(30).await.unwrap().is_allowed(), "the parts of a slot that moves are asked one by one");
    cluster.move_keys(slot, to);
    cluster.end_move(slot, to);
    assert_eq!(left().await, [57, 40, 90]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_by_a_subject_in_another_slot_is_cached() {
    let cluster = Cluster::start();
    let limiter = connected(&Limiter::builder().denial_cache(PATIENCE / 6).deadline(PATIENCE), &cluster.url()).await;
    let several = Several { limiter, policy: policy(10, 1), network: Subject::of("network") };
    let caller = callers(1).remove(0);
    assert!(several.is_admitted(&caller).await);
    assert!(!several.is_admitted(&caller).await);
    let scripts = || cluster.masters().iter().map(|master| master.calls("evalsha")).sum::<usize>();
    let before = scripts();
    for _ in 0..100 {
        assert!(!several.is_admitted(&caller).await);
    }
    assert_eq!(scripts(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_lacks_one_of_its_nodes_fails_and_is_counted_nowhere() {
    let cluster = Cluster::start();
    let limiter = connected(&Limiter::builder().deadline(Duration::from_millis(250)), &cluster.url()).await;
    let several = Several { limiter, policy: policy(100, 100), network: Subject::of("network") };
    let patient = cluster.limiter().await;
    let first = patient.check(&several.policy, &Subject::of("first")).subject("network", &several.network).await;
    assert!(first.unwrap().is_allowed());
    let has = |master: &Server, key: &str| !master.ask::<Vec<String>>(&format!("KEYS {key}")).is_empty();
    let lost = cluster.masters().iter().position(|master| has(master, "*:network")).unwrap();
    let lost_port = cluster.masters()[lost].port();
    let slot_of = |caller: &Subject| cluster.slot_of(&format!("tallygate:several/w1h:{caller}"));
    let others = callers(20).into_iter().filter(|caller| cluster.owner(slot_of(caller)).port() != lost_port);
    let others: Vec<_> = others.collect();
    let alone = Policy::builder("several").rule(Rule::sliding_window(100, HOUR)).build().unwrap();
    let counted = async |caller: &Subject| {
        let decision = patient.peek(&alone, caller).await;
        decision.map(|decision| 100 - decision.report()[0].remaining())
    };
    cluster.masters()[lost].pause();
    for caller in &others {
        assert!(several.check(caller).await.is_err());
        assert_eq!(counted(caller).await.unwrap(), 0);
    }
    cluster.masters()[lost].resume();
}
