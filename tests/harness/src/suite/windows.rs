//! Sliding windows, and rules that decide together.

use std::time::Duration;

use tallygate::{Decision, Policy, RejectionKind, Rule, Subject};

use super::{MICROSECOND, limits, named, policy, secs, somebody};
use crate::stage::Stage;

/// Calls are admitted until there were as many as the rule's count, and not one more.
pub async fn admits_exactly_count(stage: &Stage) {
    for count in [1, 2, 10, 1_000] {
        let subject = Subject::of(count);
        assert_eq!(stage.room(&limits([(count, 60)]), &subject).await, count);
    }
}

/// The window moves with the clock: each hit leaves it by itself, and no boundary lets a double burst through.
pub async fn slides(stage: &Stage) {
    let (policy, somebody) = (limits([(3, 60)]), somebody());
    for _ in 0..3 {
        stage.admitted(&policy, &somebody).await;
        stage.pass(secs(10)).await;
    }
    for wait in [30, 10, 10] {
        assert_eq!(stage.denied(&policy, &somebody).await.retry_after(), Some(secs(wait)));
        stage.pass(secs(wait)).await;
        assert_eq!(stage.room(&policy, &somebody).await, 1);
    }
    stage.pass(secs(60)).await;
    assert_eq!(stage.room(&policy, &somebody).await, 3);
}

/// One microsecond before `retry_after` has passed the call is denied, and then it is admitted.
pub async fn retry_after_is_exact_on_either_side(stage: &Stage) {
    let (policy, somebody) = (limits([(2, 60), (5, 3_600)]), somebody());
    for step in [Duration::ZERO, MICROSECOND, secs(1), Duration::from_micros(59_999_999), secs(60), secs(61)] {
        while stage.call(&policy, &somebody).await.is_allowed() {
            stage.pass(step).await;
        }
        let wait = stage.denied(&policy, &somebody).await.retry_after().expect("the call fits later");
        stage.pass(wait.saturating_sub(MICROSECOND)).await;
        assert_eq!(stage.denied(&policy, &somebody).await.retry_after(), Some(MICROSECOND));
        stage.pass(MICROSECOND).await;
        stage.admitted(&policy, &somebody).await;
    }
}

/// Where a later rule denies, the earlier ones have not counted the call.
pub async fn a_later_rules_denial_leaves_the_earlier_uncharged(stage: &Stage) {
    let (policy, somebody) = (limits([(3, 60), (4, 90)]), somebody());
    assert_eq!(two_calls(stage, &policy, &somebody).await, [true, true]);
    stage.pass(secs(61)).await;
    assert_eq!(two_calls(stage, &policy, &somebody).await, [true, true]);
    for _ in 0..5 {
        assert_eq!(named(&stage.denied(&policy, &somebody).await), (Some(1), Some(secs(29))));
    }
    stage.pass(secs(29)).await;
    // The first rule holds the two calls of 29 seconds ago, and so has room for one.
    stage.admitted(&policy, &somebody).await;
    assert_eq!(named(&stage.denied(&policy, &somebody).await), (Some(0), Some(secs(31))));
}

async fn two_calls(stage: &Stage, policy: &Policy, subject: &Subject) -> [bool; 2] {
    [stage.call(policy, subject).await.is_allowed(), stage.call(policy, subject).await.is_allowed()]
}

/// Of several denying rules the one that denies longest is named, wherever it stands.
pub async fn the_rule_that_denies_longest_is_named(stage: &Stage) {
    let (rising, falling) = (limits([(1, 60), (2, 3_600)]), limits([(2, 3_600), (1, 60)]));
    for (policy, long, short) in [(rising, 1, 0), (falling, 0, 1)] {
        let subject = Subject::of(long);
        stage.admitted(&policy, &subject).await;
        assert_eq!(named(&stage.denied(&policy, &subject).await), (Some(short), Some(secs(60))));
        stage.pass(secs(60)).await;
        stage.admitted(&policy, &subject).await;
        assert_eq!(named(&stage.denied(&policy, &subject).await), (Some(long), Some(secs(3_540))));
    }
}

/// A denial says which rule it is, and its numbers.
pub async fn a_denial_tells_the_rule(stage: &Stage) {
    let (policy, somebody) = (limits([(1, 60)]), somebody());
    stage.admitted(&policy, &somebody).await;
    let denial = stage.denied(&policy, &somebody).await;
    let rule = denial.rule().expect("a rule denied the call");
    assert_eq!((rule.position(), rule.count(), rule.per()), (0, 1, Some(secs(60))));
    assert_eq!((denial.kind(), denial.policy().name()), (RejectionKind::Limited, "limits"));
}

/// What one subject does is nothing to another, nor to the same one under another policy.
pub async fn subjects_do_not_touch_each_other(stage: &Stage) {
    let (limited, other) = (limits([(2, 60)]), policy("other", [Rule::sliding_window(2, secs(60))]));
    let subjects = [somebody(), Subject::of("somebody").and(""), Subject::of("Somebody"), Subject::everyone()];
    for subject in &subjects {
        assert_eq!(stage.room(&limited, subject).await, 2);
        assert_eq!(stage.room(&other, subject).await, 2);
    }
    for subject in &subjects {
        assert!(!stage.call(&limited, subject).await.is_allowed());
    }
}

/// However many other subjects come and go, a full tally stays full.
pub async fn a_flood_of_other_subjects_takes_nothing_from_a_subject(stage: &Stage) {
    let policy = limits([(1, 60)]);
    let victims: Vec<_> = (0..100).map(|victim| Subject::of("victim").and(victim)).collect();
    for victim in &victims {
        stage.admitted(&policy, victim).await;
    }
    for other in 0..1_000 {
        stage.admitted(&policy, &Subject::of("other").and(other)).await;
    }
    stage.pass(secs(59)).await;
    for victim in &victims {
        assert_eq!(stage.denied(&policy, victim).await.retry_after(), Some(secs(1)));
    }
}

/// Policies of one name share their tallies, so a changed count does not start anew.
pub async fn a_changed_count_keeps_the_tally(stage: &Stage) {
    let (ten, five, twenty) = (limits([(10, 60)]), limits([(5, 60)]), limits([(20, 60)]));
    for _ in 0..8 {
        stage.admitted(&ten, &somebody()).await;
    }
    assert_eq!(stage.denied(&five, &somebody()).await.retry_after(), Some(secs(60)));
    assert_eq!(stage.room(&ten, &somebody()).await, 2);
    assert_eq!(stage.room(&twenty, &somebody()).await, 10);
    stage.pass(secs(60)).await;
    assert_eq!(stage.room(&five, &somebody()).await, 5);
}

/// The same call again is a duplicate until the rule's window has passed.
pub async fn duplicates_are_distinguished_from_too_many_calls(stage: &Stage) {
    let limits = [Rule::sliding_window(2, secs(60)), Rule::sliding_window(20, secs(120))];
    let policy = policy("duplicates", [Rule::duplicate(secs(5))].into_iter().chain(limits));
    let (one, another) = (Subject::of(1), Subject::of(2));
    stage.admitted(&policy, &one).await;
    stage.admitted(&policy, &another).await;
    stage.pass(secs(2)).await;
    let denial = stage.denied(&policy, &one).await;
    assert_eq!((denial.kind(), named(&denial)), (RejectionKind::Duplicate, (Some(0), Some(secs(3)))));
    // A duplicate is not counted, so it does not begin the window anew.
    stage.pass(secs(3)).await;
    stage.admitted(&policy, &one).await;
    stage.pass(secs(5)).await;
    let denial = stage.denied(&policy, &one).await;
    assert_eq!((denial.kind(), named(&denial)), (RejectionKind::Limited, (Some(1), Some(secs(50)))));
}

/// A duplicate is named first, and the time to wait is still that of the rule that denies longest.
pub async fn a_duplicate_is_named_before_a_stricter_rule(stage: &Stage) {
    let limit = Rule::sliding_window(1, secs(60));
    let duplicate = Rule::duplicate(secs(5));
    for (place, rules) in [(0, [duplicate.clone(), limit.clone()]), (1, [limit, duplicate])] {
        let (policy, subject) = (policy("duplicates", rules), Subject::of(place));
        stage.admitted(&policy, &subject).await;
        stage.pass(secs(1)).await;
        let denial = stage.denied(&policy, &subject).await;
        assert_eq!((denial.kind(), named(&denial)), (RejectionKind::Duplicate, (Some(place), Some(secs(59)))));
        stage.pass(secs(4)).await;
        let denial = stage.denied(&policy, &subject).await;
        assert_eq!((denial.kind(), named(&denial)), (RejectionKind::Limited, (Some(1 - place), Some(secs(55)))));
    }
}

/// Eight rules decide together as their definition says, call by call.
pub async fn many_rules_decide_together(stage: &Stage) {
    let rules = [(1, 1), (2, 4), (4, 12), (6, 25), (8, 45), (10, 70), (12, 100), (14, 140)];
    let policy = limits(rules);
    let (mut now, mut hits) = (Duration::ZERO, Vec::new());
    let mut random = fastrand::Rng::with_seed(8);
    let mut naming = [0; 8];
    for _ in 0..600 {
        let expected = verdict(&rules, &hits, now);
        match stage.call(&policy, &somebody()).await {
            Decision::Allowed(_) => {
                assert_eq!(expected, None, "at {now:?} after {hits:?}");
                hits.push(now);
            }
            Decision::Denied(denial) => {
                let (rule, wait) = named(&denial);
                assert_eq!(expected, rule.zip(wait), "at {now:?} after {hits:?}");
                naming[rule.expect("a rule denied the call")] += 1;
            }
        }
        let step = Duration::from_micros(random.u64(0..2_000_000));
        stage.pass(step).await;
        now += step;
    }
    assert!(naming.iter().filter(|&&denials| denials > 0).count() > 4, "every kind of denial was seen: {naming:?}");
}

/// The first of the rules that deny longest, and for how long; in the words of their definition.
fn verdict(rules: &[(u64, u64)], hits: &[Duration], now: Duration) -> Option<(usize, Duration)> {
    let waits = rules.iter().enumerate().filter_map(|(index, &(count, per))| {
        let left = hits.iter().map(|&hit| (hit + secs(per)).saturating_sub(now));
        let within: Vec<_> = left.filter(|left| !left.is_zero()).collect();
        let newest_in_the_way = within.len().checked_sub(usize::try_from(count).expect("small"))?;
        Some((index, within[newest_in_the_way]))
    });
    waits.reduce(|longest, next| if next.1 > longest.1 { next } else { longest })
}

/// A full tally that is left alone is empty again after its longest window, and admits as much as at first.
pub async fn nothing_counts_after_the_longest_window(stage: &Stage) {
    let policy = limits([(5, 10), (7, 600)]);
    for _ in 0..3 {
        assert_eq!(stage.room(&policy, &somebody()).await, 5);
        stage.pass(secs(10)).await;
        assert_eq!(stage.room(&policy, &somebody()).await, 2);
        stage.pass(secs(600)).await;
    }
}

/// A denial is no hit: however often a denied caller asks, it is admitted when its time has come.
pub async fn denied_calls_do_not_put_off_admission(stage: &Stage) {
    let (policy, somebody) = (limits([(1, 60)]), somebody());
    stage.admitted(&policy, &somebody).await;
    for left in (1..60).rev() {
        stage.pass(secs(1)).await;
        assert_eq!(stage.denied(&policy, &somebody).await.retry_after(), Some(secs(left)));
    }
    stage.pass(secs(1)).await;
    stage.admitted(&policy, &somebody).await;
}
