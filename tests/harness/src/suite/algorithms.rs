//! What is particular to an algorithm, to a cost and to a report.

use tallygate::{Decision, RejectionKind, Rule, Subject, TokenBucket};

use super::{MICROSECOND, named, policy, secs, somebody};
use std::time::Duration;

use crate::stage::Stage;

/// The greatest integer that is exact everywhere.
const GREATEST: u64 = (1 << 53) - 1;

/// A call of any cost is one hit for a duplicate's window, and takes no more room than one.
pub async fn a_great_cost_takes_no_more_room_than_the_windows_need(stage: &Stage) {
    let alone = policy("alone", [Rule::fixed_window(GREATEST, secs(60))]);
    let beside = policy("beside", [Rule::duplicate(secs(5)), Rule::fixed_window(GREATEST, secs(60))]);
    assert!(stage.costly(&alone, &somebody(), GREATEST).await.is_allowed());
    assert!(stage.costly(&beside, &somebody(), GREATEST - 1).await.is_allowed());
    assert_eq!(stage.denied(&beside, &somebody()).await.kind(), RejectionKind::Duplicate);
    stage.pass(secs(5)).await;
    stage.admitted(&beside, &somebody()).await;
    stage.pass(secs(5)).await;
    for policy in [alone, beside] {
        assert_eq!(stage.denied(&policy, &somebody()).await.kind(), RejectionKind::Limited);
    }
}

/// A cost that does not fit into what is stored is still a cost.
pub async fn a_cost_beyond_all_numbers_never_fits(stage: &Stage) {
    let policy = policy("beyond", [Rule::fixed_window(GREATEST, secs(60))]);
    for cost in [GREATEST + 1, 1 << 56, (1 << 56) + 1, u64::MAX] {
        let Decision::Denied(denial) = stage.costly(&policy, &somebody(), cost).await else {
            panic!("{cost} was admitted")
        };
        assert_eq!(named(&denial), (Some(0), None));
        assert!(denial.to_string().ends_with(" per 1m; this request alone exceeds it"), "{denial}");
    }
}

/// A rule whose count became 0 denies every call for ever, whatever it has counted, and reports that nothing is left.
pub async fn a_count_of_zero_closes_the_door(stage: &Stage) {
    let bucket = TokenBucket::new(secs(60)).with_capacity(5).with_initial(3).with_reset_after(secs(60));
    let windows =
        [Rule::sliding_window(2, secs(60)), Rule::sliding_counter(2, secs(60)), Rule::fixed_window(2, secs(60))];
    for (index, rule) in windows.into_iter().chain([Rule::from_bucket(2, bucket)]).enumerate() {
        let (open, subject) = (policy("door", [rule]), Subject::of(index));
        for used in [false, true] {
            let decision = stage.costly(&open.with_counts([0]), &subject, 1).await;
            assert_eq!(decision.report()[0].remaining(), 0);
            assert_eq!(decision.report()[0].used_up_for(), None);
            // A bucket without a capacity is always whole.
            assert_eq!(decision.report()[0].reset() > secs(0), used && index < 3);
            let Decision::Denied(denial) = decision else { panic!("the door of {open:?} is closed") };
            assert_eq!(named(&denial), (Some(0), None));
            stage.admitted(&open, &subject).await;
        }
    }
}

/// Where nothing is left, a report says to the microsecond when one more call fits. That is before the rule is unused, except for
/// a fixed window, which forgets all its calls at once.
pub async fn a_report_says_when_one_more_call_fits(stage: &Stage) {
    let rules = [
        Rule::fixed_window(3, secs(60)),
        Rule::sliding_window(3, secs(60)),
        Rule::sliding_counter(3, secs(60)),
        Rule::token_bucket(3, secs(60)),
    ];
    for (index, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (policy("more", [rule]), Subject::of(index));
        for _ in 0..2 {
            assert_eq!(stage.costly(&policy, &subject, 1).await.report()[0].used_up_for(), None);
            stage.pass(secs(7)).await;
        }
        let last = stage.costly(&policy, &subject, 1).await;
        let status = &last.report()[0];
        let wait = status.used_up_for().expect("nothing is left");
        assert_eq!((last.is_allowed(), wait < status.reset()), (true, index > 0), "{status:?}");

        stage.pass(secs(5)).await;
        let left = wait.saturating_sub(secs(5));
        for cost in [0, 1, 2] {
            let decision = stage.costly(&policy, &subject, cost).await;
            assert_eq!(decision.report()[0].used_up_for(), Some(left), "{decision:?}");
        }
        stage.pass(left.saturating_sub(MICROSECOND)).await;
        assert!(!stage.costly(&policy, &subject, 1).await.is_allowed());
        stage.pass(MICROSECOND).await;
        assert!(stage.costly(&policy, &subject, 1).await.is_allowed());
    }
}

/// A call that costs nothing is counted by no rule, and the report says so.
pub async fn a_call_that_costs_nothing_leaves_every_rule_whole(stage: &Stage) {
    let rules = [
        Rule::sliding_window(5, secs(60)),
        Rule::sliding_counter(5, secs(60)),
        Rule::fixed_window(5, secs(61)),
        Rule::token_bucket(5, secs(61)),
        Rule::duplicate(secs(5)),
    ];
    let policy = policy("free", rules);
    for _ in 0..3 {
        let decision = stage.costly(&policy, &somebody(), 0).await;
        let reported: Vec<_> = decision.report().iter().map(|rule| (rule.remaining(), rule.reset())).collect();
        assert!(decision.is_allowed());
        assert_eq!(reported, [5, 5, 5, 5, 1].map(|whole| (whole, secs(0))));
    }
}

/// A bucket that is left alone forgets what has flown into it. So a call that another rule puts off for that long may
/// find too little, and then it never fits.
pub async fn a_wait_that_outlasts_a_bucket_is_for_ever(stage: &Stage) {
    let bucket = TokenBucket::new(secs(1)).with_capacity(100).with_initial(2).with_reset_after(secs(30));
    let window = policy("window", [Rule::sliding_window(6, secs(60)), Rule::from_bucket(1, bucket)]);
    let short = policy("short", [Rule::sliding_window(6, secs(20)), Rule::from_bucket(1, bucket)]);
    for (policy, wait) in [(window, None), (short, Some(secs(10)))] {
        assert!(stage.costly(&policy, &somebody(), 2).await.is_allowed());
        stage.pass(secs(10)).await;
        // Ten tokens have come. The window has room for four.
        let Decision::Denied(denial) = stage.costly(&policy, &somebody(), 5).await else {
            panic!("the window is full")
        };
        assert_eq!(named(&denial), (Some(0), wait));
        // It costs no more than both rules admit at once.
        let end = if wait.is_some() { "; try again in 10s" } else { "; waiting does not help" };
        assert!(denial.to_string().ends_with(end), "{denial}");
        stage.pass(Duration::from_micros(10_000_000 - 1)).await;
        assert!(!stage.costly(&policy, &somebody(), 5).await.is_allowed());
        stage.pass(MICROSECOND).await;
        assert_eq!(stage.costly(&policy, &somebody(), 5).await.is_allowed(), wait.is_some());
        stage.pass(secs(40)).await;
        assert!(!stage.costly(&policy, &somebody(), 5).await.is_allowed());
    }
}
