//! What is particular to an algorithm, to a cost and to a report.

use tallygate::{Decision, Kind, Rule, RuleReport, TokenBucket};

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
    assert_eq!(stage.denied(&beside, &somebody()).await.kind(), Kind::Duplicate);
    stage.pass(secs(5)).await;
    stage.admitted(&beside, &somebody()).await;
    stage.pass(secs(5)).await;
    for policy in [alone, beside] {
        assert_eq!(stage.denied(&policy, &somebody()).await.kind(), Kind::Limited);
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
    }
}

/// Rules whose count became 0 deny every call for ever, and report that nothing is left of them.
pub async fn a_closed_door_reports_that_nothing_is_left(stage: &Stage) {
    let bucket = TokenBucket::new(2, secs(60)).reset_after(secs(90));
    let open = policy("door", [Rule::sliding_window(2, secs(60)), Rule::fixed_window(2, secs(61)), bucket.into()]);
    let closed = open.with_counts([0, 0, 0]);
    stage.admitted(&open, &somebody()).await;
    let Decision::Denied(denial) = stage.costly(&closed, &somebody(), 1).await else { panic!("the door is closed") };
    assert_eq!(named(&denial), (Some(0), None));
    let closed = stage.costly(&closed, &somebody(), 1).await;
    assert_eq!(closed.report().iter().map(RuleReport::remaining).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(closed.report().iter().map(RuleReport::reset).collect::<Vec<_>>(), [60, 61, 0].map(secs));
    let open = stage.costly(&open, &somebody(), 1).await;
    assert_eq!(open.report().iter().map(RuleReport::remaining).collect::<Vec<_>>(), [0, 0, 0]);
}

/// A call that costs nothing is counted by nobody, and the report says so.
pub async fn a_call_that_costs_nothing_leaves_every_rule_whole(stage: &Stage) {
    let rules = [
        Rule::sliding_window(5, secs(60)),
        Rule::sliding_counter(5, secs(60)),
        Rule::fixed_window(5, secs(61)),
        Rule::token_bucket(5, secs(60)),
        Rule::duplicate(secs(5)),
    ];
    let policy = policy("free", rules);
    for _ in 0..3 {
        let decision = stage.costly(&policy, &somebody(), 0).await;
        let told: Vec<_> = decision.report().iter().map(|rule| (rule.remaining(), rule.reset())).collect();
        assert!(decision.is_allowed());
        assert_eq!(told, [5, 5, 5, 5, 1].map(|whole| (whole, secs(0))));
    }
}

/// A bucket that is left alone forgets what has flown into it. So a call that another rule puts off for that long may
/// find too little, and then it never fits.
pub async fn a_wait_that_outlasts_a_bucket_is_for_ever(stage: &Stage) {
    let bucket = TokenBucket::new(1, secs(1)).capacity(100).initial(2).reset_after(secs(30));
    let window = policy("window", [Rule::sliding_window(6, secs(60)), bucket.clone().into()]);
    let short = policy("short", [Rule::sliding_window(6, secs(20)), bucket.into()]);
    for (policy, wait) in [(window, None), (short, Some(secs(10)))] {
        assert!(stage.costly(&policy, &somebody(), 2).await.is_allowed());
        stage.pass(secs(10)).await;
        // Ten tokens have come. The window has room for four.
        let Decision::Denied(denial) = stage.costly(&policy, &somebody(), 5).await else {
            panic!("the window is full")
        };
        assert_eq!(named(&denial), (Some(0), wait));
        stage.pass(Duration::from_micros(10_000_000 - 1)).await;
        assert!(!stage.costly(&policy, &somebody(), 5).await.is_allowed());
        stage.pass(MICROSECOND).await;
        assert_eq!(stage.costly(&policy, &somebody(), 5).await.is_allowed(), wait.is_some());
        stage.pass(secs(40)).await;
        assert!(!stage.costly(&policy, &somebody(), 5).await.is_allowed());
    }
}
