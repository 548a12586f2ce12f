//! Slots that move from one node to another.

use std::time::Duration;

use tallygate::testing::ManualClock;
use tallygate::{Limiter, Policy, Rule, RuleStatus, Subject};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::pressure::{Pressure, assert_all_stored, counted, policy};
use tallygate_harness::server::{connected, patient};
use tokio::task;

use super::{key, spread, tagged};

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_under_load_fail_no_call_and_lose_no_hit() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let subjects = spread(50);
    let slots: Vec<_> = subjects.iter().map(|subject| cluster.slot_of(&key(subject))).collect();
    let pressure = Pressure::start(&limiter, subjects);
    pressure.admit(500).await;
    for (number, &slot) in slots.iter().cycle().take(cases(50, 1_000)).enumerate() {
        let from = cluster.owner(slot).port();
        let others: Vec<_> = cluster.masters().iter().filter(|master| master.port() != from).collect();
        let to = others[number % others.len()];
        cluster.move_slot(slot, to);
        pressure.admit(20).await;
    }
    assert_all_stored(&limiter, &pressure.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slots_that_redis_cli_moves_under_load_fail_no_call_and_lose_no_hit() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let slots = cases(100, 1_000);
    let moves = |subject: &Subject| cluster.slot_of(&key(subject)) < slots;
    // A part of the callers are in slots that move, and the others are not.
    let moving: Vec<_> = (0..).map(Subject::of).filter(moves).take(20).collect();
    let pressure =
        Pressure::start(&limiter, moving.into_iter().chain((0..20).map(|value| Subject::of("s").and(value))));
    pressure.admit(500).await;
    let [first, second, _] = cluster.masters() else { panic!("there are three masters") };
    task::block_in_place(|| cluster.reshard(first, second, slots));
    pressure.admit(500).await;
    assert_eq!(cluster.owner(0).port(), second.port());
    assert_all_stored(&limiter, &pressure.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_between_two_nodes_is_counted_on_both_and_the_script_is_sent_to_each() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let subjects: Vec<_> = (0..20).map(|value| tagged(&limiter, "tag", value)).collect();
    let call = async || {
        for subject in &subjects {
            assert!(limiter.check(&policy(), subject).await.unwrap().is_allowed());
        }
    };
    let slot = cluster.slot_of("{tag}");
    let from = cluster.owner(slot);
    let to = cluster.masters().iter().find(|master| master.port() != from.port()).unwrap();
    // Ten are known before the slot moves, and half of them are moved by hand.
    for subject in &subjects[..10] {
        assert!(limiter.check(&policy(), subject).await.unwrap().is_allowed());
    }
    cluster.begin_move(slot, to);
    for subject in &subjects[..5] {
        Cluster::move_key(from, &key(subject), to);
    }
    to.ask::<()>("SCRIPT FLUSH");
    call().await;
    cluster.move_keys(slot, to);
    call().await;
    cluster.end_move(slot, to);
    call().await;
    for (index, subject) in subjects.iter().enumerate() {
        assert_eq!(counted(&limiter, subject).await, if index < 10 { 4 } else { 3 });
        assert_eq!(to.ask::<u64>(&format!("EXISTS {}", key(subject))), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_come_together_are_decided_while_their_slot_moves() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let pressure = Pressure::start(&limiter, (0..64).map(|value| tagged(&limiter, "tag", value)));
    pressure.admit(500).await;
    let slot = cluster.slot_of("{tag}");
    for _ in 0..cases(3, 30) {
        let from = cluster.owner(slot).port();
        let to = cluster.masters().iter().find(|master| master.port() != from).unwrap();
        cluster.begin_move(slot, to);
        pressure.admit(500).await;
        cluster.move_keys(slot, to);
        pressure.admit(500).await;
        cluster.end_move(slot, to);
    }
    assert_all_stored(&limiter, &pressure.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_two_subjects_in_a_slot_that_moves_is_decided_wherever_they_are() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let hour = Duration::from_secs(3_600);
    let policy = Policy::builder("pressure").rule(Rule::sliding_window(100, hour));
    let policy = policy.rule_on("other", Rule::sliding_window(100, hour)).build().unwrap();
    let subjects: Vec<_> = (0..6).map(|value| tagged(&limiter, "tag", value)).collect();
    let other = tagged(&limiter, "tag", 1_000);
    let check = |subject| limiter.check(&policy, subject).subject("other", &other);
    let slot = cluster.slot_of("{tag}");
    let from = cluster.owner(slot);
    let to = cluster.masters().iter().find(|master| master.port() != from.port()).unwrap();
    let call = async || {
        for subject in &subjects {
            assert!(check(subject).await.unwrap().is_allowed());
        }
    };
    call().await;
    cluster.begin_move(slot, to);
    call().await;
    // One of the two is here and the other there, or neither is yet; new subjects are nowhere.
    for subject in &subjects[..3] {
        Cluster::move_key(from, &key(subject), to);
    }
    call().await;
    let new = tagged(&limiter, "tag", 2_000);
    assert!(check(&new).await.unwrap().is_allowed());
    let permit = check(&new).refundable().await.unwrap().into_result().unwrap();
    assert!(permit.refund().await.unwrap());
    cluster.move_keys(slot, to);
    call().await;
    cluster.end_move(slot, to);
    let report = check(&new).peek().report().await.unwrap();
    assert_eq!(report.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>(), [99, 100 - 25]);
    for subject in &subjects {
        assert_eq!(check(subject).peek().report().await.unwrap().report()[0].remaining(), 96);
    }
}

#[tokio::test]
async fn a_slot_that_moves_to_a_node_whose_clock_is_behind_forgets_what_lies_in_its_future_and_no_more() {
    const AHEAD: Duration = Duration::from_secs(3);
    let cluster = Cluster::shared();
    let (count, clock) = (5, new_clock());
    let ahead = ManualClock::new(clock.now() + AHEAD);
    let limiter_of = |clock: &ManualClock| patient().prefix("clocks").clock(clock);
    let first = connected(&limiter_of(&ahead), &cluster.url()).await;
    let then = connected(&limiter_of(&clock), &cluster.url()).await;
    let policy = Policy::builder("p").rule(Rule::sliding_window(count, Duration::from_secs(60))).build().unwrap();
    let subject = Subject::of("s");
    let room = async |limiter: &Limiter| {
        let mut room = 0;
        while limiter.check(&policy, &subject).await.unwrap().is_allowed() {
            room += 1;
        }
        room
    };
    // Two calls lie far enough back for both clocks.
    for _ in 0..2 {
        assert!(then.check(&policy, &subject).await.unwrap().is_allowed());
    }
    assert_eq!(room(&first).await, 3);
    let slot = cluster.slot_of(&format!("clocks:p/w1m:{subject}"));
    let from = cluster.owner(slot).port();
    cluster.move_slot(slot, cluster.masters().iter().find(|master| master.port() != from).unwrap());
    assert_eq!(room(&then).await, 3, "what was admitted in the last three seconds is admitted once more");
    clock.advance(AHEAD);
    assert_eq!((room(&first).await, room(&then).await), (0, 0), "from then on, the clocks make no difference");
}
