//! Which denials are cached, and for how long.

use super::*;
use tallygate_rules::Rule;

use crate::call::CallOptions;
use crate::policy::SubjectCost;
use crate::subject::{Subject, SubjectKey};

const SECOND: Duration = Duration::from_secs(1);
const START_US: u64 = 1_800_000_000_000_000;

fn policy(count: u64) -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(count, 60 * SECOND)).build().unwrap()
}

fn subject(value: impl std::fmt::Display) -> SubjectKey {
    Subject::of(value).key()
}

fn call<'a>(policy: &'a Policy, subjects: &'a [SubjectKey], cost: u64) -> Call<'a> {
    Call::new(policy, subjects, CallOptions { cost, ..CallOptions::PLAIN })
}

fn denied(retry_after_us: u64) -> Outcome {
    Outcome::Denied { rule: 0, retry_after: Wait::us(retry_after_us) }
}

#[test]
fn a_denial_is_cached_for_its_time_and_counted_down() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 1);
    assert_eq!(denials.get(call, START_US), None);
    denials.record(call, denied(3_000_000), START_US, START_US + 200);
    assert_eq!(denials.get(call, START_US + 200), Some(denied(3_000_000)));
    assert_eq!(denials.get(call, START_US + 999_999), Some(denied(2_000_201)));
    assert_eq!(denials.get(call, START_US + 1_000_000), None, "a second after it was asked");
}

#[test]
fn no_denial_is_cached_once_the_call_would_be_admitted() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 1);
    denials.record(call, denied(5_000), START_US, START_US + 200);
    assert_eq!(denials.get(call, START_US + 4_999), Some(denied(201)));
    for later_us in [5_000, 5_001, 900_000] {
        assert_eq!(denials.get(call, START_US + later_us), None);
    }
    denials.record(call, denied(100), START_US, START_US + 200);
    assert_eq!(denials.get(call, START_US + 200), None, "the answer took longer than the denial");
}

#[test]
fn one_caller_asks_again_while_the_others_get_the_cached_denial() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 1);
    denials.record(call, denied(3_000_000), START_US, START_US);
    assert_eq!(denials.get(call, START_US + 1_000_000), None);
    assert_eq!(denials.get(call, START_US + 1_000_000), Some(denied(2_000_000)));
    // The renewal has not been answered.
    assert_eq!(denials.get(call, START_US + 1_000_000 + RENEWAL_US), None);
}

#[test]
fn a_denial_is_cached_for_the_same_rules_the_same_subjects_and_no_lower_cost() {
    let denials = DenialCache::new(SECOND).unwrap();
    let (five, six, subjects, others) =
        (policy(5), policy(6), [subject("s"), subject("a")], [subject("s"), subject("b")]);
    denials.record(call(&five, &subjects, 2), denied(3_000_000), START_US, START_US);
    let recall = |call: Call<'_>| denials.get(call, START_US).is_some();
    assert!(recall(call(&five, &subjects, 2)) && recall(call(&five, &subjects, 3)));
    assert!(recall(call(&policy(5), &subjects, 2)), "rules that are equal are the same");
    assert!(!recall(call(&five, &subjects, 1)));
    assert!(!recall(call(&six, &subjects, 2)));
    assert!(!recall(call(&five, &others, 2)) && !recall(call(&five, &subjects[..1], 2)));
    let call = call(&five, &subjects, 2);
    assert!(!recall(Call { options: CallOptions { report: true, ..call.options }, ..call }));
    assert!(!recall(Call { options: CallOptions { peek: true, ..call.options }, ..call }));
}

#[test]
fn a_denial_answers_a_call_although_another_that_answers_it_is_due() {
    let rule = Rule::sliding_window(5, 60 * SECOND);
    let policy = Policy::builder("p").rule(rule.clone()).rule(rule.counting("tokens")).build().unwrap();
    let subjects = [subject("s"), subject("s")];
    let costs = |tokens| [SubjectCost::Calls, SubjectCost::Unit(tokens)];
    for [first, second] in [[(5, 1), (1, 5)], [(1, 5), (5, 1)]] {
        let denials = DenialCache::new(SECOND).unwrap();
        for ((cost, tokens), asked_us) in [(first, START_US), (second, START_US + 500_000)] {
            let denied_call = call(&policy, &subjects, cost);
            denials.record(denied_call.with_costs(&costs(tokens)), denied(3_000_000), asked_us, asked_us);
        }
        let dear = costs(5);
        let dear = call(&policy, &subjects, 5).with_costs(&dear);
        assert_eq!(
            denials.get(dear, START_US + 1_000_000),
            Some(denied(2_500_000)),
            "the second, and nobody asks again"
        );
    }
}

#[test]
fn what_can_never_be_admitted_is_cached_too() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 2);
    let never = Outcome::Denied { rule: 0, retry_after: Wait::NEVER };
    denials.record(call, never, START_US, START_US);
    assert_eq!(denials.get(call, START_US + 999_999), Some(never));
    assert_eq!(denials.get(call, START_US + 1_000_000), None);
}

#[test]
fn a_denial_is_forgotten_at_an_admission_and_not_recalled_before_it_came() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 1);
    denials.record(call, denied(3_000_000), START_US, START_US);
    denials.record(call, Outcome::Admitted, START_US, START_US);
    assert_eq!(denials.get(call, START_US), None);
    denials.record(call, denied(3_000_000), START_US, START_US);
    assert_eq!(denials.get(call, START_US - 1), None, "the clock was set back");
}

#[test]
fn an_answer_from_before_a_reset_is_not_cached() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 1);
    denials.invalidate(call.tally_ids(), START_US + 5);
    denials.record(call, denied(3_000_000), START_US, START_US + 10);
    assert_eq!(denials.get(call, START_US + 10), None);
    denials.record(call, denied(3_000_000), START_US + 6, START_US + 10);
    assert_eq!(denials.get(call, START_US + 10), Some(denied(3_000_000)));
}

#[test]
fn room_for_a_subject_that_several_share_ends_the_denials_by_its_rules_for_all_of_them() {
    let (denials, policy) = (DenialCache::new(SECOND).unwrap(), {
        let rule = || Rule::sliding_window(1, 60 * SECOND);
        Policy::builder("p").rule(rule()).rule_on("ip", rule()).build().unwrap()
    });
    // More than one has another address, as two subjects may share the time of a change.
    let users =
        ["a", "b", "c", "d", "e"].map(|user| [subject(user), subject(if user < "c" { "shared" } else { user })]);
    let calls = users.each_ref().map(|subjects| call(&policy, subjects, 1));
    let is_cached = |rule, asked_us, room: Option<Call<'_>>| {
        for call in calls {
            denials.record(call, Outcome::Denied { rule, retry_after: Wait::us(3_000_000) }, asked_us, asked_us);
        }
        if let Some(room) = room {
            denials.invalidate(room.part(1).tally_ids(), asked_us + 1);
        }
        calls.map(|call| denials.get(call, asked_us + 2).is_some())
    };
    assert_eq!(is_cached(1, START_US, None), [true; 5]);
    let [first, second, others @ ..] = is_cached(1, START_US + 9, Some(calls[0]));
    assert!(!first && !second && others.contains(&true));
    assert_eq!(is_cached(1, START_US + 19, None), [true; 5]);
    assert!(is_cached(0, START_US + 29, Some(calls[0])).contains(&true), "other rules deny them all the same");
}

#[test]
fn a_caller_that_read_the_clock_before_the_answer_came_takes_it_from_nobody() {
    let (denials, policy, subjects) = (DenialCache::new(SECOND).unwrap(), policy(1), [subject("s")]);
    let call = call(&policy, &subjects, 1);
    denials.record(call, denied(3_000_000), START_US, START_US + 200);
    let _ = denials.get(call, START_US + 199);
    assert_eq!(denials.get(call, START_US + 200), Some(denied(3_000_000)));
}

#[test]
fn a_policy_with_a_ban_caches_no_denial() {
    let ban = tallygate_rules::Ban::new(3, 60 * SECOND, 600 * SECOND);
    let banning = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).ban(ban).build().unwrap();
    let (denials, subjects) = (DenialCache::new(SECOND).unwrap(), [subject("s")]);
    let call = call(&banning, &subjects, 1);
    for answered in [denied(3_000_000), Outcome::Banned { retry_after: Wait::us(600_000_000) }] {
        denials.record(call, answered, START_US, START_US);
        assert_eq!(denials.get(call, START_US), None);
    }
}

#[test]
fn a_flood_of_subjects_takes_no_more_memory_than_there_is_room_for() {
    let (denials, policy) = (DenialCache::new(SECOND).unwrap(), policy(1));
    for number in 0..50_000 {
        let subjects = [subject(number)];
        denials.record(call(&policy, &subjects, 1), denied(3_000_000), START_US, START_US);
    }
    let held = || denials.shards.iter().map(|shard| shard.lock().unwrap().denials.len()).sum::<usize>();
    assert!(held() > 15_000 && held() <= SHARDS * MOST_PER_SHARD, "{}", held());
    for number in 50_000..100_000 {
        let subjects = [subject(number)];
        let call = call(&policy, &subjects, 1);
        denials.record(call, denied(3_000_000), START_US + 2_000_000, START_US + 2_000_000);
        assert!(denials.get(call, START_US + 2_000_000).is_some());
    }
    assert!(held() <= SHARDS * MOST_PER_SHARD, "{}", held());
}

#[test]
fn a_flood_of_one_policy_leaves_the_cached_denials_of_others() {
    let denials = DenialCache::new(SECOND).unwrap();
    let (flooding, calm) =
        (policy(1), Policy::builder("calm").rule(Rule::sliding_window(1, 60 * SECOND)).build().unwrap());
    let record = |policy: &Policy, number: usize| {
        denials.record(call(policy, &[subject(number)], 1), denied(3_000_000), START_US, START_US);
    };
    let kept = |policy: &Policy, numbers: std::ops::Range<usize>| {
        numbers.filter(|&number| denials.get(call(policy, &[subject(number)], 1), START_US).is_some()).count()
    };
    (0..500).for_each(|number| record(&calm, number));
    (0..50_000).for_each(|number| record(&flooding, number));
    assert_eq!(kept(&calm, 0..500), 500);
    // If the flood fills the table, a denial of another policy replaces one of its denials.
    (500..1_000).for_each(|number| record(&calm, number));
    assert_eq!(kept(&calm, 0..1_000), 1_000);
    assert_eq!(kept(&flooding, 0..50_000), SHARDS * MOST_PER_SHARD - 1_000);
    // Removed and ended denials are no longer counted.
    for number in 0..1_000 {
        let subjects = [subject(number)];
        denials.forget(call(&calm, &subjects, 1));
        assert_eq!(denials.get(call(&flooding, &[subject(number)], 1), START_US + 3_000_000), None);
    }
    for shard in &denials.shards {
        let shard = shard.lock().unwrap();
        let most = shard.population.most(Inhabitant::of("calm/w1m"));
        assert!(most == Inhabitant::of("p/w1m"));
        let counted = shard.population.count(most);
        assert_eq!(counted, shard.denials.len());
    }
}
