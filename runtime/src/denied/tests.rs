//! What is remembered, and for how long.

use super::*;
use crate::key::Short;
use crate::{Rule, Subject};

const SECOND: Duration = Duration::from_secs(1);
const START_US: u64 = 1_800_000_000_000_000;

fn policy(count: u64) -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(count, 60 * SECOND)).build().unwrap()
}

fn subject(value: impl std::fmt::Display) -> Short {
    Subject::of(value).short()
}

fn request<'a>(policy: &'a Policy, subjects: &'a [Short], cost: u64) -> Request<'a> {
    Request { policy, subjects, cost, report: false, peek: false }
}

fn denied(retry_after_us: u64) -> Verdict {
    Verdict::Denied { rule: 0, retry_after: Some(Duration::from_micros(retry_after_us)) }
}

#[test]
fn a_denial_is_recalled_for_its_time_and_counted_down() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 1);
    assert_eq!(denials.recall(request, START_US), None);
    denials.learn(request, denied(3_000_000), START_US, START_US + 200);
    assert_eq!(denials.recall(request, START_US + 200), Some(denied(3_000_000)));
    assert_eq!(denials.recall(request, START_US + 999_999), Some(denied(2_000_201)));
    assert_eq!(denials.recall(request, START_US + 1_000_000), None, "a second after it was asked");
}

#[test]
fn no_denial_is_recalled_once_the_call_would_be_admitted() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 1);
    denials.learn(request, denied(5_000), START_US, START_US + 200);
    assert_eq!(denials.recall(request, START_US + 4_999), Some(denied(201)));
    for later_us in [5_000, 5_001, 900_000] {
        assert_eq!(denials.recall(request, START_US + later_us), None);
    }
    denials.learn(request, denied(100), START_US, START_US + 200);
    assert_eq!(denials.recall(request, START_US + 200), None, "the answer took longer than the denial");
}

#[test]
fn one_caller_asks_again_while_the_others_go_by_what_is_known() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 1);
    denials.learn(request, denied(3_000_000), START_US, START_US);
    assert_eq!(denials.recall(request, START_US + 1_000_000), None);
    assert_eq!(denials.recall(request, START_US + 1_000_000), Some(denied(2_000_000)));
    // It has not come back.
    assert_eq!(denials.recall(request, START_US + 1_000_000 + RENEWAL_US), None);
}

#[test]
fn a_denial_is_recalled_for_the_same_rules_the_same_subjects_and_no_lower_cost() {
    let denials = Denials::new(SECOND).unwrap();
    let (five, six, subjects, others) =
        (policy(5), policy(6), [subject("s"), subject("a")], [subject("s"), subject("b")]);
    denials.learn(request(&five, &subjects, 2), denied(3_000_000), START_US, START_US);
    let recall = |request: Request<'_>| denials.recall(request, START_US).is_some();
    assert!(recall(request(&five, &subjects, 2)) && recall(request(&five, &subjects, 3)));
    assert!(recall(request(&policy(5), &subjects, 2)), "rules that are equal are the same");
    assert!(!recall(request(&five, &subjects, 1)));
    assert!(!recall(request(&six, &subjects, 2)));
    assert!(!recall(request(&five, &others, 2)) && !recall(request(&five, &subjects[..1], 2)));
    assert!(!recall(Request { report: true, ..request(&five, &subjects, 2) }));
    assert!(!recall(Request { peek: true, ..request(&five, &subjects, 2) }));
}

#[test]
fn what_can_never_be_admitted_is_recalled_too() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 2);
    let never = Verdict::Denied { rule: 0, retry_after: None };
    denials.learn(request, never, START_US, START_US);
    assert_eq!(denials.recall(request, START_US + 999_999), Some(never));
    assert_eq!(denials.recall(request, START_US + 1_000_000), None);
}

#[test]
fn a_denial_is_forgotten_at_an_admission_and_not_recalled_before_it_came() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 1);
    denials.learn(request, denied(3_000_000), START_US, START_US);
    denials.learn(request, Verdict::Admitted, START_US, START_US);
    assert_eq!(denials.recall(request, START_US), None);
    denials.learn(request, denied(3_000_000), START_US, START_US);
    assert_eq!(denials.recall(request, START_US - 1), None, "the clock was set back");
}

#[test]
fn an_answer_from_before_the_subject_was_reset_is_not_remembered() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 1);
    denials.forget_all(request, START_US + 5);
    denials.learn(request, denied(3_000_000), START_US, START_US + 10);
    assert_eq!(denials.recall(request, START_US + 10), None);
    denials.learn(request, denied(3_000_000), START_US + 6, START_US + 10);
    assert_eq!(denials.recall(request, START_US + 10), Some(denied(3_000_000)));
}

#[test]
fn a_caller_that_read_the_clock_before_the_answer_came_takes_it_from_nobody() {
    let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let request = request(&policy, &subjects, 1);
    denials.learn(request, denied(3_000_000), START_US, START_US + 200);
    let _ = denials.recall(request, START_US + 199);
    assert_eq!(denials.recall(request, START_US + 200), Some(denied(3_000_000)));
}

#[test]
fn a_policy_with_a_ban_remembers_no_denial() {
    let ban = tallygate_rules::Ban::new(3, 60 * SECOND, 600 * SECOND);
    let banning = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).ban(ban).build().unwrap();
    let (denials, subjects) = (Denials::new(SECOND).unwrap(), [subject("s")]);
    let request = request(&banning, &subjects, 1);
    for verdict in [denied(3_000_000), Verdict::Banned { retry_after: 600 * SECOND }] {
        denials.learn(request, verdict, START_US, START_US);
        assert_eq!(denials.recall(request, START_US), None);
    }
}

#[test]
fn a_flood_of_subjects_takes_no_more_memory_than_there_is_room_for() {
    let (denials, policy) = (Denials::new(SECOND).unwrap(), policy(1));
    for number in 0..50_000 {
        let subjects = [subject(number)];
        denials.learn(request(&policy, &subjects, 1), denied(3_000_000), START_US, START_US);
    }
    let held = || denials.shards.iter().map(|shard| shard.lock().unwrap().denials.len()).sum::<usize>();
    assert!(held() > 15_000 && held() <= SHARDS * MOST_PER_SHARD, "{}", held());
    for number in 50_000..100_000 {
        let subjects = [subject(number)];
        let request = request(&policy, &subjects, 1);
        denials.learn(request, denied(3_000_000), START_US + 2_000_000, START_US + 2_000_000);
        assert!(denials.recall(request, START_US + 2_000_000).is_some());
    }
    assert!(held() <= SHARDS * MOST_PER_SHARD, "{}", held());
}
