//! Fields of calls that would be duplicates, and of those that other rules deny for longer.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_admitted_call_does_not_say_that_it_would_be_a_duplicate_as_clients_would_hold_back_other_calls() {
    let policy = policy("codes", [Rule::sliding_window(3, secs(60)), Rule::duplicate(secs(5))]);
    let decided = Decided::new();
    assert!(decided.call(&policy, 1).await);
    assert_eq!(decided.values(), [r#""codes.1m";q=3;w=60"#, r#""codes.1m";r=2;t=60"#]);
    assert_eq!(decided.fields(Draft::V7)[0].1, "3;w=60");
    assert!(!decided.call(&policy, 1).await);
    assert_eq!(decided.values()[1], r#""codes.1m";r=2, "codes.duplicate";r=0;t=5"#);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_another_rule_denies_for_longer_shows_its_own_window_and_clients_act_on_the_other() {
    let policy = policy("codes", [Rule::sliding_window(1, secs(60)), Rule::duplicate(secs(5))]);
    let decided = Decided::new();
    assert!(decided.call(&policy, 1).await && !decided.call(&policy, 1).await);
    assert_eq!(decided.values()[1], r#""codes.1m";r=0;t=60, "codes.duplicate";r=0;t=5"#);
    assert_eq!(decided.decisions.retry_after(), Some(secs(60)));
    let tightest = decided.fields(Fields::from(Draft::V11).items(Items::Tightest));
    assert_eq!(tightest[1].1, r#""codes.1m";r=0;t=60"#);
    assert_eq!(decided.fields(Draft::V7)[1].1, "limit=1, remaining=0, reset=60");
    assert_eq!(decided.fields(Legacy::XRateLimit)[2].1, "60");

    // Without a report, nothing is known of the other: the duplicate does not take its wait.
    let unreported = Decided { decisions: Decisions::new(), ..decided };
    assert!(!unreported.call_unreported(&policy).await);
    assert_eq!(unreported.values(), [r#""codes.duplicate";q=1;w=5"#, r#""codes.duplicate";r=0"#]);
    // Older fields do not invite the client before its wait is over, either.
    assert_eq!(unreported.fields(Draft::V7), [("ratelimit-policy".into(), "1;w=5".to_owned())]);
    assert_eq!(unreported.fields(Legacy::XRateLimit), []);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_does_not_take_the_wait_of_another_rule_that_ends_within_its_window() {
    let policy = policy("codes", [Rule::sliding_window(1, secs(40)), Rule::duplicate(secs(30))]);
    let decided = Decided::new();
    assert!(decided.call(&policy, 1).await);
    tokio::time::advance(secs(15)).await;
    assert!(!decided.call(&policy, 1).await);
    assert_eq!(decided.values()[1], r#""codes.40s";r=0;t=25, "codes.duplicate";r=0;t=15"#);
    assert_eq!(decided.fields(Legacy::XRateLimit)[2].1, "25");
}

#[tokio::test(start_paused = true)]
async fn of_a_duplicate_and_a_rule_that_denies_for_longer_the_client_acts_on_the_latter_whatever_remains_of_it() {
    let decided = Decided::new();
    let tokens = Rule::from_bucket(100, TokenBucket::new(secs(100))).named("tokens");
    let policy = policy("model", [tokens, Rule::duplicate(secs(5)), Rule::concurrency(9, secs(30))]);
    assert!(decided.call(&policy, 90).await);
    tokio::time::advance(secs(2)).await;
    let again = Decided { decisions: Decisions::new(), ..decided };
    assert!(!again.call(&policy, 45).await);
    assert_eq!(again.decisions.retry_after(), Some(secs(33)));
    let tightest = again.fields(Fields::from(Draft::V11).items(Items::Tightest));
    assert_eq!(tightest[1].1, r#""model.tokens";r=12;t=33"#);
    assert_eq!(again.fields(Draft::V7)[1].1, "limit=100, remaining=12, reset=33");
    assert_eq!(again.fields(Legacy::XRateLimit)[1].1, "12");
}
