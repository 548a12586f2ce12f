//! What one process has taken ahead: how long it is used, what ends it, and what becomes of the rest.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tallygate::config::Policies;
use tallygate::{Ban, Decision, Limiter, Policy, Rule};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::until::until_found;
use tokio::task::{JoinSet, yield_now};

use super::busy::{AHEAD, Busy, COUNT, MILLISECOND, NOT_QUITE, PER, SECOND, USED_FOR, policy, tenant};

#[tokio::test]
async fn what_is_taken_ahead_ends_before_its_time_and_its_rest_is_given_back() {
    let busy = Busy::start().await;
    assert!(busy.remaining().await < COUNT - busy.used.load(Ordering::Relaxed), "more was taken than is used");
    busy.clock.advance(NOT_QUITE);
    assert!(busy.is_decided_ahead().await);
    busy.clock.advance(MILLISECOND);
    assert!(!busy.is_decided_ahead().await);
    // A part that was asked for meanwhile ends, too.
    busy.clock.advance(AHEAD);
    busy.is_given_back().await;
    let [mut taken, mut used, mut given_back] = [0; 3];
    until_found("all that was taken is used or given back", async || {
        for (sum, state) in [(&mut taken, "taken"), (&mut used, "used"), (&mut given_back, "given_back")] {
            *sum += busy.counted("tallygate_prefetch_units_total", state);
        }
        taken == used + given_back
    })
    .await;
    assert!(used > 0 && given_back > 0);
}

#[tokio::test]
async fn a_call_is_refunded_and_settled_where_it_was_counted() {
    let busy = Busy::start().await;
    for (cost, settled) in [(3, None), (4, Some(1)), (2, Some(6))] {
        busy.take_ahead().await;
        let permit = busy.check(&tenant()).cost(cost).refundable().await.unwrap().into_result().unwrap();
        assert_eq!(busy.counted("tallygate_prefetch_decisions_total", "tenant"), 1);
        match settled {
            None => assert!(permit.refund().await.unwrap()),
            Some(used) => {
                assert!(permit.settle(used).await.unwrap());
                busy.used.fetch_add(used, Ordering::Relaxed);
            }
        }
    }
    busy.clock.advance(AHEAD);
    busy.is_given_back().await;
}

#[tokio::test]
async fn a_reset_ends_what_was_taken_ahead_at_once() {
    let busy = Busy::start().await;
    busy.check(&tenant()).reset().await.unwrap();
    busy.used.store(0, Ordering::Relaxed);
    assert_eq!(busy.counted("tallygate_prefetch_early_ends_total", "tenant"), 1);
    assert!(!busy.is_decided_ahead().await);
    busy.clock.advance(AHEAD);
    busy.is_given_back().await;
}

#[tokio::test]
async fn an_override_that_is_known_ends_what_was_taken_ahead_at_once() {
    let busy = Busy::start().await;
    busy.limiter.override_policy("tenant").rules([Rule::sliding_window(0, PER)]).set().await.unwrap();
    assert!(!busy.check(&tenant()).await.unwrap().is_allowed(), "the limit is closed");
    busy.limiter.override_policy("tenant").rules([Rule::sliding_window(COUNT / 2, PER)]).set().await.unwrap();
    assert!(!busy.is_decided_ahead().await, "other rules, another ledger");
    busy.take_ahead().await;
    busy.limiter.override_policy("tenant").clear().await.unwrap();
    assert!(!busy.is_decided_ahead().await);
}

#[tokio::test]
async fn a_file_can_have_each_call_ask_redis_and_keeps_the_tallies() {
    let busy = Busy::start().await;
    busy.limiter.apply(&Policies::from_toml("[policy.tenant]\nprefetch = false").unwrap()).unwrap();
    for _ in 0..20 {
        assert!(!busy.is_decided_ahead().await);
    }
    busy.clock.advance(AHEAD);
    busy.is_given_back().await;
}

#[tokio::test]
async fn an_override_of_another_process_is_noticed_while_calls_are_decided_ahead() {
    let busy = Busy::start().await;
    busy.other.override_policy("tenant").rules([Rule::sliding_window(0, PER)]).set().await.unwrap();
    until_found("the limit is closed", async || {
        busy.clock.advance(MILLISECOND);
        !busy.check(&tenant()).await.unwrap().is_allowed()
    })
    .await;
}

#[tokio::test]
async fn a_denial_waits_no_shorter_than_what_all_processes_have_taken() {
    let busy = Busy::start().await;
    let rest = busy.remaining().await;
    assert!(busy.other.check(&busy.policy, &tenant()).cost(rest).await.unwrap().is_allowed());
    let Decision::Denied(denial) = busy.other.check(&busy.policy, &tenant()).await.unwrap() else {
        panic!("it is full")
    };
    let waits = denial.retry_after().unwrap();
    assert_eq!(waits, PER + AHEAD, "the first part is out of the wider window then");
    // Another process may give back earlier what it has not used.
    busy.clock.advance(AHEAD);
    until_found("what is left is given back", async || busy.remaining().await > 0).await;
}

#[tokio::test]
async fn a_part_is_no_decision_of_a_caller() {
    let busy = Busy::with(
        Policy::builder("tenant").rule(Rule::sliding_window(COUNT, PER)).warn_at(0.1).prefetch(AHEAD).build().unwrap(),
    )
    .await;
    let used = busy.used.load(Ordering::Relaxed);
    assert_eq!(busy.counted("tallygate_decisions_total", "allowed"), used);
    assert_eq!(busy.counted("tallygate_warnings_total", "tenant"), 0, "a part alone is near no limit");
    let rest = busy.remaining().await;
    assert!(busy.other.check(&busy.policy, &tenant()).cost(rest).await.unwrap().is_allowed());
    let own = busy.limiter.peek(&busy.policy, &tenant()).await.unwrap().report()[0].remaining();
    for _ in 0..own {
        assert!(busy.check(&tenant()).await.unwrap().is_allowed());
        yield_now().await;
    }
    assert_eq!(busy.counted("tallygate_decisions_total", "limited"), 0, "only parts were denied");
}

fn banning() -> Policy {
    let rule = Rule::sliding_window(COUNT, PER);
    // A ban lasts longer than any test lets pass.
    Policy::builder("tenant").rule(rule).ban(Ban::new(1, PER, 60 * PER)).prefetch(AHEAD).build().unwrap()
}

#[tokio::test]
async fn a_ban_by_hand_ends_what_was_taken_ahead_at_once() {
    let busy = Busy::with(banning()).await;
    busy.check(&tenant()).ban(PER).await.unwrap();
    let Decision::Denied(denial) = busy.check(&tenant()).await.unwrap() else { panic!("it is banned") };
    assert!(denial.rule().is_none());
}

#[tokio::test]
async fn a_part_that_is_denied_counts_towards_no_ban() {
    let busy = Busy::with(banning()).await;
    let others = busy.remaining().await;
    assert!(busy.other.check(&busy.policy, &tenant()).cost(others).await.unwrap().is_allowed());
    let own = busy.limiter.peek(&busy.policy, &tenant()).await.unwrap().report()[0].remaining();
    let asked = busy.server.calls("evalsha");
    for _ in 0..own {
        assert!(busy.is_decided_ahead().await);
    }
    until_found("a part is asked for", async || busy.server.calls("evalsha") > asked).await;
    busy.clock.advance(2 * PER);
    assert!(busy.other.check(&busy.policy, &tenant()).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_reply_that_comes_late_is_given_back_and_nothing_is_taken_for_a_while() {
    let busy = Busy::start().await;
    busy.clock.advance(2 * PER);
    busy.used.store(0, Ordering::Relaxed);
    busy.proxy.hold_replies();
    // Many callers at once, as none is answered.
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let (limiter, policy) = (busy.limiter.clone(), busy.policy.clone());
        calls.spawn(async move { limiter.check(&policy, &tenant()).await.unwrap().is_allowed() });
    }
    until_found("replies are held", async || {
        yield_now().await;
        busy.proxy.held() > 0
    })
    .await;
    busy.clock.advance(AHEAD);
    busy.proxy.deliver();
    let admitted = calls.join_all().await.into_iter().filter(|is_allowed| *is_allowed).count();
    busy.used.fetch_add(u64::try_from(admitted).unwrap(), Ordering::Relaxed);
    busy.is_given_back().await;
    for _ in 0..20 {
        assert!(!busy.is_decided_ahead().await);
    }
}

#[tokio::test]
async fn a_peek_and_a_report_count_what_was_taken_as_used_and_add_the_own_part() {
    let busy = Busy::start().await;
    let own = busy.limiter.peek(&busy.policy, &tenant()).await.unwrap().report()[0].remaining();
    assert_eq!(own, COUNT - busy.used.load(Ordering::Relaxed));
    let seen = busy.remaining().await;
    assert!(seen < own);
    let reported = busy.check(&tenant()).report().await.unwrap();
    assert_eq!(reported.report()[0].remaining(), own - 1);
    assert_eq!(busy.counted("tallygate_prefetch_decisions_total", "tenant"), 0, "a report is that of Redis");
    // To others, the subject is at its limit; to this process, it is not.
    assert!(busy.other.check(&busy.policy, &tenant()).cost(seen - 1).await.unwrap().is_allowed());
    assert!(!busy.other.peek(&busy.policy, &tenant()).await.unwrap().is_allowed());
    assert!(busy.limiter.peek(&busy.policy, &tenant()).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_warning_comes_with_the_call_that_comes_near_the_limit() {
    let rule = Rule::sliding_window(100, PER);
    let policy = Policy::builder("tenant").rule(rule).prefetch(AHEAD).warn_at(0.8).build().unwrap();
    let busy = Busy::with(policy).await;
    let mut warned = Vec::new();
    loop {
        match busy.check(&tenant()).await.unwrap() {
            Decision::Allowed(permit) => warned.push(permit.warning().is_some()),
            Decision::Denied(_) => break,
        }
        yield_now().await;
    }
    let first = warned.iter().position(|is_warned| *is_warned).unwrap();
    let used = usize::try_from(busy.used.load(Ordering::Relaxed)).unwrap();
    assert_eq!(used + first + 1, 80);
    assert!(warned[first..].iter().all(|is_warned| *is_warned));
}

#[tokio::test]
async fn a_part_of_a_fixed_window_ends_with_it() {
    let busy = Busy::with(policy(Rule::fixed_window(COUNT, SECOND))).await;
    // It ends in 50 milliseconds.
    busy.clock.advance(Duration::from_millis(950));
    busy.take_ahead().await;
    busy.clock.advance(Duration::from_millis(47));
    assert!(busy.is_decided_ahead().await);
    busy.clock.advance(MILLISECOND);
    assert!(!busy.is_decided_ahead().await, "the window ends in two milliseconds");
}

#[tokio::test]
async fn calls_of_every_algorithm_are_taken_ahead() {
    for rule in [Rule::sliding_counter(COUNT, SECOND), Rule::token_bucket(COUNT, SECOND)] {
        let busy = Busy::with(policy(rule)).await;
        busy.clock.advance(USED_FOR);
        assert!(!busy.is_decided_ahead().await);
    }
}

#[tokio::test]
async fn in_memory_nothing_is_taken_and_the_whole_limit_is_there() {
    let clock = new_clock();
    let limiter = Limiter::builder().clock(&clock).build_in_memory().unwrap();
    let policy = policy(Rule::sliding_window(100, SECOND));
    for _ in 0..2 {
        for call in 0..101 {
            assert_eq!(limiter.check(&policy, &tenant()).await.unwrap().is_allowed(), call < 100);
        }
        clock.advance(SECOND);
    }
}
