//! Units: several amounts in one decision.

use std::pin::pin;
use std::time::Duration;

use tallygate::{Ban, Denial, Limiter, Permit, Policy, RejectionKind, Rule, Schedule, Subject, TokenBucket};

use super::secs;
use crate::stage::Stage;

/// Calls and tokens of one subject, by a rule of every algorithm for the tokens.
pub(super) fn chats() -> Vec<Policy> {
    // No test plays over the end of a year.
    let yearly = Schedule::parse("0 0 0 1 1 *", "UTC").expect("a schedule");
    let tokens = [
        Rule::sliding_window(100, secs(60)),
        Rule::sliding_counter(100, secs(60)),
        Rule::fixed_window(100, secs(60)),
        Rule::from_bucket(1, TokenBucket::new(secs(60)).with_capacity(100)),
        Rule::cron(100, yearly),
    ];
    let chat = |(number, tokens): (usize, Rule)| {
        let policy = Policy::builder(format!("chat{number}")).rule(Rule::sliding_window(3, secs(60)));
        policy.rule(tokens.counting("tokens")).build().expect("the rules are sound")
    };
    tokens.into_iter().enumerate().map(chat).collect()
}

pub(super) async fn permit(limiter: &Limiter, policy: &Policy, subject: &Subject, tokens: u64) -> Permit {
    let decision = limiter.check(policy, subject).cost_of("tokens", tokens).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

pub(super) async fn used(limiter: &Limiter, policy: &Policy, subject: &Subject) -> Vec<u64> {
    let decision = limiter.peek(policy, subject).await.expect("the backend answers");
    decision.report().iter().map(tallygate::RuleStatus::used).collect()
}

/// Each unit is charged by its own cost, or none is charged: the rule that denies is named with its unit.
pub async fn all_units_of_a_call_are_charged_or_none(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let check = |tokens| limiter.check(&policy, &alice).cost_of("tokens", tokens);
        assert!(check(70).await.unwrap().is_allowed(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [1, 70], "{policy:?}");
        let denial = check(31).await.unwrap().into_result().unwrap_err();
        assert_eq!(denial.rule().and_then(|denying| denying.rule().unit()), Some("tokens"), "{policy:?}");
        assert_eq!(denial.kind(), RejectionKind::Limited);
        assert_eq!(used(limiter, &policy, &alice).await, [1, 70], "{policy:?}");
        assert!(check(10).await.unwrap().is_allowed() && check(10).await.unwrap().is_allowed(), "{policy:?}");
        let denial = check(1).await.unwrap().into_result().unwrap_err();
        assert_eq!(denial.rule().map(|denying| denying.rule().unit()), Some(None), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [3, 90], "{policy:?}");
    }
}

/// A call that costs nothing in a unit leaves it alone; one that costs more than its limit never fits.
pub async fn a_cost_of_nothing_or_beyond_the_limit_of_a_unit_is_decided_by_that_unit(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        assert!(limiter.check(&policy, &alice).await.unwrap().is_allowed());
        assert_eq!(used(limiter, &policy, &alice).await, [1, 0], "{policy:?}");
        let denial = limiter.check(&policy, &alice).cost_of("tokens", 101).await.unwrap().into_result().unwrap_err();
        assert_eq!(denial.retry_after(), None, "{policy:?}");
        let free = limiter.check(&policy, &alice).cost(0).cost_of("tokens", 40).await.unwrap();
        assert!(free.is_allowed());
        assert_eq!(used(limiter, &policy, &alice).await, [1, 40], "{policy:?}");
    }
}

/// A settlement changes the units that it names; a refund removes the call from all of them.
pub async fn a_settlement_of_a_unit_leaves_the_others(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let one = permit(limiter, &policy, &alice, 60).await;
        assert!(one.settle_units(&[("tokens", 25)]).await.unwrap(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [1, 25], "{policy:?}");
        let two = permit(limiter, &policy, &alice, 5).await;
        assert!(two.settle_units(&[("tokens", 45), ("calls", 2)]).await.unwrap(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [3, 70], "{policy:?}");
        let mistake = limiter.check(&policy, &Subject::of("bob")).refundable().await.unwrap().into_result().unwrap();
        let error = mistake.settle_units(&[("token", 1)]).await.unwrap_err();
        assert!(error.to_string().contains("no rule of policy"), "{error}");

        let carol = Subject::of("carol");
        let refunded = permit(limiter, &policy, &carol, 60).await;
        assert!(refunded.refund().await.unwrap());
        assert_eq!(used(limiter, &policy, &carol).await, [0, 0], "{policy:?}");
    }
}

/// A unit that is settled for nothing is given back, and the others stay.
pub async fn one_unit_of_a_call_is_refunded_by_settling_it_for_nothing(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let call = permit(limiter, &policy, &alice, 60).await;
        assert!(call.settle_units(&[("tokens", 0)]).await.unwrap(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [1, 0], "{policy:?}");
        let call = permit(limiter, &policy, &alice, 60).await;
        assert!(call.settle_units(&[("calls", 0)]).await.unwrap(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [1, 60], "{policy:?}");
    }
}

/// What a call has used of a unit in which it cost nothing counts from the settlement on, even beyond the limit.
pub async fn what_is_paid_afterwards_counts_even_beyond_the_limit(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let permit = limiter.check(&policy, &alice).refundable().await.unwrap().into_result().unwrap();
        stage.pass(secs(1)).await;
        assert!(permit.settle_units(&[("tokens", 30)]).await.unwrap(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await, [1, 30], "{policy:?}");
        let permit = limiter.check(&policy, &alice).refundable().await.unwrap().into_result().unwrap();
        assert!(permit.settle_units(&[("tokens", 500)]).await.unwrap(), "{policy:?}");
        assert_eq!(used(limiter, &policy, &alice).await[1], 100, "{policy:?}");
        for check in [limiter.check(&policy, &alice).cost_of("tokens", 1), limiter.check(&policy, &alice)] {
            let denial = check.await.unwrap().into_result().unwrap_err();
            assert_eq!(denial.rule().and_then(|denying| denying.rule().unit()), Some("tokens"), "{policy:?}");
        }
    }
}

/// However much calls use afterwards, and however many of them, the sums of a log do not begin anew.
pub async fn what_is_used_afterwards_never_makes_room(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let bytes = 2_000_000_000;
    let policy = Policy::builder("uploads").rule(Rule::sliding_window(9, secs(60)));
    let policy = policy.rule(Rule::sliding_window(bytes, secs(60)).counting("bytes")).build().unwrap();
    let mut running = Vec::new();
    for _ in 0..5 {
        running.push(limiter.check(&policy, &alice).refundable().await.unwrap().into_result().unwrap());
    }
    for permit in running {
        stage.pass(Duration::from_micros(3)).await;
        permit.settle_units(&[("bytes", bytes)]).await.unwrap();
        assert!(!limiter.check(&policy, &alice).await.unwrap().is_allowed());
    }
    stage.pass(secs(60)).await;
    assert_eq!(used(limiter, &policy, &alice).await, [0, 0]);
}

/// What has ended takes no room from what calls use afterwards, though the log may still hold it.
pub async fn what_has_ended_leaves_room_for_what_is_used_afterwards(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("uploads").rule(Rule::sliding_window(9, secs(300)));
    let policy = policy.rule(Rule::sliding_window(2_000_000_000, secs(60)).counting("bytes")).build().unwrap();
    let running = async || limiter.check(&policy, &alice).refundable().await.unwrap().into_result().unwrap();
    let permits = [running().await, running().await, running().await];
    for (permit, bytes) in permits.into_iter().zip([2_000_000_000, 2_000_000_000, 200_000_000]) {
        assert!(permit.settle_units(&[("bytes", bytes)]).await.unwrap());
        stage.pass(secs(20)).await;
    }
    stage.pass(secs(30)).await;
    assert!(running().await.settle_units(&[("bytes", 1_000_000_000)]).await.unwrap());
    assert_eq!(used(limiter, &policy, &alice).await, [4, 1_200_000_000]);
}

/// A policy may have as many windows as any, on one subject or unit beside another.
pub async fn the_most_windows_are_decided_beside_another_unit(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for windows in [24, 25, 31] {
        let builder = Policy::builder(format!("windows-{windows}"));
        let rules = (1..=windows).map(|count| Rule::sliding_window(count, secs(60 * count * count)));
        let policy = rules.fold(builder, tallygate::PolicyBuilder::rule);
        let policy = policy.rule(Rule::sliding_window(9, secs(60)).counting("tokens")).build().unwrap();
        let check = async || limiter.check(&policy, &alice).cost_of("tokens", 1).await.unwrap();
        assert!(check().await.is_allowed(), "{windows}");
        let denial = check().await.into_result().unwrap_err();
        assert_eq!(denial.rule().map(|denying| denying.position()), Some(0), "{windows}");
        assert_eq!(denial.retry_after(), Some(secs(60)), "{windows}");
    }
}

/// A unit may count another subject, beside a concurrency limit. A call that costs nothing in calls takes no lease.
pub async fn units_of_several_subjects_and_running_calls_are_decided_together(stage: &Stage) {
    let (limiter, alice, org) = (stage.limiter(), Subject::of("alice"), Subject::of("acme"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(60, secs(60)))
        .rule(Rule::sliding_window(100, secs(60)).counting("tokens"))
        .rule_on("org", Rule::sliding_window(150, secs(60)).counting("tokens"))
        .rule(Rule::concurrency(1, secs(30)))
        .build()
        .unwrap();
    let check = async |user: &Subject, tokens| {
        let check = limiter.check(&policy, user).subject("org", &org).cost_of("tokens", tokens);
        check.refundable().await.expect("the backend answers")
    };
    let running = check(&alice, 80).await.into_result().unwrap();
    let second = check(&alice, 10).await.into_result().unwrap_err();
    assert_eq!(second.kind(), RejectionKind::Concurrency);
    let bob = Subject::of("bob");
    let denial = check(&bob, 71).await.into_result().unwrap_err();
    assert_eq!(denial.rule().map(|denying| denying.position()), Some(2));
    let others = check(&bob, 70).await.into_result().unwrap();
    others.refund().await.unwrap();
    running.settle_units(&[("tokens", 30)]).await.unwrap();
    let decision = limiter.peek(&policy, &alice).subject("org", &org).await.unwrap();
    let used: Vec<_> = decision.report().iter().map(tallygate::RuleStatus::used).collect();
    assert_eq!(used, [1, 30, 30, 0]);
    let running = check(&alice, 10).await.into_result().unwrap();
    let free = limiter.check(&policy, &bob).subject("org", &org).cost(0).cost_of("tokens", 10).await.unwrap();
    assert!(free.is_allowed());
    assert!(check(&bob, 10).await.is_allowed(), "a call without cost in calls holds no lease");
    drop(running);
}

/// A call that names a unit of another policy is not decided.
pub async fn a_call_names_only_units_of_its_policy(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = &chats()[0];
    let error = limiter.check(policy, &alice).cost_of("token", 1).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no rule of policy `chat0` counts the unit `token`; its rules count `calls` and `tokens`"
    );
    assert_eq!(used(limiter, policy, &alice).await, [0, 0]);
}

/// Where all rules count other units, nothing is paid or settled in calls.
pub async fn a_cost_in_calls_that_no_rule_counts_is_an_error(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let tokens = Rule::sliding_window(100, secs(60)).counting("tokens");
    let policy = &Policy::builder("tokens").rule(tokens).build().unwrap();
    let uncounted = "no rule of policy `tokens` counts the unit `calls`; its rules count `tokens`";
    for check in [limiter.check(policy, &alice).cost(30), limiter.check(policy, &alice).cost_of("calls", 30)] {
        assert_eq!(check.await.unwrap_err().to_string(), uncounted);
    }
    let permit = async || permit(limiter, policy, &alice, 30).await;
    assert!(permit().await.settle(20).await.unwrap_err().to_string().contains("settle a unit, like"));
    assert!(permit().await.settle_units(&[("calls", 20)]).await.is_err());
    assert!(permit().await.meter("calls").is_err());
    assert_eq!(used(limiter, policy, &alice).await, [90], "each call stays counted as it was");
}

/// A rule in shadow counts its unit by the cost in that unit, and is settled with the call.
pub async fn a_rule_in_shadow_counts_its_unit(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(60, secs(60)))
        .rule(Rule::sliding_window(100, secs(60)).counting("tokens").shadow())
        .build()
        .unwrap();
    let tried = async || {
        let decision = limiter.peek(&policy, &alice).await.unwrap();
        decision.shadow_report().iter().map(tallygate::RuleStatus::used).collect::<Vec<_>>()
    };
    permit(limiter, &policy, &alice, 70).await.settle_units(&[("tokens", 50)]).await.unwrap();
    assert_eq!(tried().await, [50]);
    drop(permit(limiter, &policy, &alice, 70).await);
    assert_eq!(tried().await, [50], "a call that the rule would deny runs, and is not counted");
}

/// A call that its policy would deny runs in shadow. The rules in shadow beside have counted it, and are settled.
pub async fn a_call_that_runs_in_shadow_settles_the_rules_in_shadow_beside(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(1, secs(60)))
        .rule(Rule::sliding_window(100, secs(60)).counting("tokens").shadow())
        .shadow()
        .build()
        .unwrap();
    permit(limiter, &policy, &alice, 30).await.settle_units(&[("tokens", 10)]).await.unwrap();
    let mut metered = permit(limiter, &policy, &alice, 30).await;
    metered.meter("tokens").unwrap().add(15);
    drop(metered);
    let settled = permit(limiter, &policy, &alice, 30).await.settle_units(&[("tokens", 20)]).await;
    settled.unwrap();
    assert!(limiter.drain(secs(60)).await.is_nothing());
    let decision = limiter.peek(&policy, &alice).await.unwrap();
    assert_eq!(decision.shadow_report().iter().map(tallygate::RuleStatus::used).collect::<Vec<_>>(), [45]);
}

fn unit_of(denial: &Denial) -> Option<&str> {
    denial.rule().and_then(|denying| denying.rule().unit())
}

/// A peek counts nothing in any unit, so its refund gives nothing back, and it cannot be settled.
pub async fn the_permit_of_a_peek_gives_no_unit_back(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        drop(permit(limiter, &policy, &alice, 60).await);
        let peek = async || {
            let peek = limiter.peek(&policy, &alice).cost_of("tokens", 40).refundable();
            peek.await.unwrap().into_result().unwrap()
        };
        assert!(!peek().await.refund().await.unwrap(), "{policy:?}");
        let error = peek().await.settle_units(&[("tokens", 1)]).await.unwrap_err();
        assert!(error.to_string().contains("do not peek"), "{error}");
        assert_eq!(used(limiter, &policy, &alice).await, [1, 60], "{policy:?}");
    }
}

/// A refund on one subject removes all units of that subject, and no others.
pub async fn a_refund_on_a_subject_removes_all_of_its_units(stage: &Stage) {
    let (limiter, alice, org) = (stage.limiter(), Subject::of("alice"), Subject::of("acme"));
    let tokens = || Rule::sliding_window(100, secs(60)).counting("tokens");
    let builder = Policy::builder("chat").rule(Rule::sliding_window(3, secs(60))).rule(tokens());
    let policy = builder.rule_on("org", Rule::sliding_window(5, secs(60))).rule_on("org", tokens()).build().unwrap();
    let check = || limiter.check(&policy, &alice).subject("org", &org);
    let used = async || {
        let peek = check().peek().report().await.unwrap();
        peek.report().iter().map(tallygate::RuleStatus::used).collect::<Vec<_>>()
    };
    let permit = check().cost_of("tokens", 70).refundable().await.unwrap().into_result().unwrap();
    assert_eq!(used().await, [1, 70, 1, 70]);
    assert!(permit.refund_on("org").await.unwrap());
    assert_eq!(used().await, [1, 70, 0, 0]);
}

/// A denial by any unit counts towards the ban of the main subject, and a ban denies whatever the call costs.
pub async fn denials_by_a_unit_lead_to_a_ban(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(60, secs(60)))
        .rule(Rule::sliding_window(100, secs(60)).counting("tokens"))
        .ban(Ban::new(2, secs(60), secs(600)))
        .build()
        .unwrap();
    let check = async |tokens| limiter.check(&policy, &alice).cost_of("tokens", tokens).await.unwrap();
    for _ in 0..2 {
        assert_eq!(unit_of(&check(101).await.into_result().unwrap_err()), Some("tokens"));
    }
    assert_eq!(check(0).await.into_result().unwrap_err().kind(), RejectionKind::Banned);
    stage.pass(secs(601)).await;
    assert!(check(100).await.is_allowed());
}

/// A count of 0 closes a unit for calls that pay in it, or may pay in it afterwards.
pub async fn a_count_of_nothing_closes_a_unit_for_those_who_pay_in_it(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let policy = policy.with_counts([3, 0]);
        let check = || limiter.check(&policy, &alice);
        for denied in [check().cost_of("tokens", 1), check()] {
            let denial = denied.await.unwrap().into_result().unwrap_err();
            assert_eq!((unit_of(&denial), denial.retry_after()), (Some("tokens"), None), "{policy:?}");
        }
        assert!(check().cost_of("tokens", 0).await.unwrap().is_allowed(), "{policy:?}");
    }
}

/// An override of the rules of one unit leaves the rules and the counts of the others.
pub async fn an_override_of_a_unit_keeps_what_the_others_have_counted(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = &chats()[0];
    drop(permit(limiter, policy, &alice, 70).await);
    let overriding = || limiter.override_policy("chat0").allow_unknown();
    let tokens = |count, seconds| Rule::sliding_window(count, secs(seconds)).counting("tokens");
    overriding().rules([tokens(500, 60)]).set().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await, [1, 70]);
    assert!(limiter.check(policy, &alice).cost_of("tokens", 430).await.unwrap().is_allowed());
    overriding().rules([tokens(500, 30)]).set().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await, [2, 0], "tokens have another window");
    overriding().rules([Rule::sliding_window(2, secs(60))]).set().await.unwrap();
    let denial = limiter.check(policy, &alice).await.unwrap().into_result().unwrap_err();
    assert_eq!(unit_of(&denial), None);
    overriding().clear().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await[0], 2);
}

/// Units keep their counts from one override to the next, whatever windows they give the calls.
pub async fn overrides_of_calls_keep_what_a_unit_has_counted_in_other_windows(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = &chats()[0];
    let overriding = || limiter.override_policy("chat0").allow_unknown();
    let calls = |seconds| Rule::sliding_window(3, secs(seconds));
    let tokens = || Rule::sliding_window(100, secs(120)).counting("tokens");
    overriding().rules([calls(120), tokens()]).set().await.unwrap();
    drop(permit(limiter, policy, &alice, 70).await);
    overriding().rules([calls(300), tokens()]).set().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await, [0, 70], "calls have another window");
    overriding().rules([tokens()]).set().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await, [0, 70]);
    overriding().rules([calls(300), tokens()]).subject(&alice).set().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await, [0, 70]);
    assert!(!limiter.check(policy, &alice).cost_of("tokens", 31).await.unwrap().is_allowed());
    limiter.check(policy, &alice).reset().await.unwrap();
    overriding().subject(&alice).clear().await.unwrap();
    assert_eq!(used(limiter, policy, &alice).await[1], 0, "a reset holds for all overrides");
}

/// The denial of a call answers those that cost as much in each unit, and no others.
pub async fn the_denial_of_a_costly_call_denies_no_cheaper_one(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let tokens = Rule::sliding_window(5_000, secs(60)).counting("tokens");
    let policy = Policy::builder("chat").rule(Rule::sliding_window(60, secs(60))).rule(tokens).build().unwrap();
    let is_allowed =
        async |tokens| limiter.check(&policy, &alice).cost_of("tokens", tokens).await.unwrap().is_allowed();
    assert!(is_allowed(2_000).await);
    assert!(!is_allowed(4_000).await);
    assert!(is_allowed(10).await);
    assert!(!is_allowed(4_000).await && !is_allowed(2_991).await);
    assert!(is_allowed(2_990).await);
    assert_eq!(used(limiter, &policy, &alice).await, [3, 5_000]);
}

/// A call that waits for room in a unit is woken when another one has used less than it has cost.
pub async fn a_settlement_of_a_unit_wakes_a_caller_that_waits(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let running = permit(limiter, &policy, &alice, 90).await;
        let waiting = limiter.acquire(&policy, &alice).cost_of("tokens", 50);
        let settling = async {
            // Its answers come after those to the caller that waits, which then sleeps.
            for _ in 0..10 {
                assert_eq!(used(limiter, &policy, &alice).await, [1, 90], "{policy:?}");
            }
            assert!(running.settle_units(&[("tokens", 40)]).await.unwrap(), "{policy:?}");
        };
        let before = stage.now();
        let (admitted, ()) = tokio::join!(waiting.into_future(), settling);
        assert!(admitted.unwrap().is_allowed(), "{policy:?}");
        assert_eq!(stage.now(), before, "{policy:?}: it was woken");
        assert_eq!(used(limiter, &policy, &alice).await, [2, 90], "{policy:?}");
    }
}

/// Behind a caller that pays afterwards, one that pays at once waits if there is room for it in time: the first takes nothing.
pub async fn a_caller_behind_one_that_pays_afterwards_waits_for_its_room(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let bucket = Rule::from_bucket(1, TokenBucket::new(secs(1)).with_capacity(5)).counting("tokens");
    let policy = Policy::builder("waits.later").rule(bucket).build().unwrap();
    let check = |tokens| limiter.check(&policy, &alice).cost_of("tokens", tokens);
    assert!(check(5).await.unwrap().is_allowed());
    let first = async { limiter.acquire(&policy, &alice).await.unwrap().is_allowed() };
    let second = async { check(4).wait(secs(4)).await.unwrap().is_allowed() };
    let (mut first, mut second) = (pin!(first), pin!(second));
    let sleeps = async |caller: &mut std::pin::Pin<&mut dyn Future<Output = bool>>| {
        // Each of these has its answer after the caller before has its own, which then sleeps.
        for _ in 0..10 {
            tokio::select! {
                biased;
                admitted = &mut *caller => panic!("{admitted}"),
                used = used(limiter, &policy, &alice) => assert_eq!(used, [5]),
            }
        }
    };
    sleeps(&mut (first.as_mut() as _)).await;
    sleeps(&mut (second.as_mut() as _)).await;
    stage.pass(secs(1)).await;
    assert!(first.await);
    stage.pass(secs(3)).await;
    assert!(second.await, "there is room for it in time");
}

/// A permit warns of the unit that comes near its limit.
pub async fn a_permit_warns_of_the_unit_that_comes_near_its_limit(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(10, secs(60)))
        .rule(Rule::sliding_window(100, secs(60)).counting("tokens"))
        .warn_at(0.8)
        .build()
        .unwrap();
    assert!(permit(limiter, &policy, &alice, 70).await.warning().is_none());
    let near = permit(limiter, &policy, &alice, 15).await;
    assert_eq!(near.warning().map(|status| (status.rule().unit(), status.used())), Some((Some("tokens"), 85)));
}

/// Under `prefetch`, each unit is counted by its own cost, however much of it is taken ahead.
pub async fn units_are_taken_ahead_each_by_its_own_cost(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("busy")
        .rule(Rule::sliding_window(600, secs(60)))
        .rule(Rule::sliding_window(6_000, secs(60)).counting("tokens"))
        .prefetch(std::time::Duration::from_millis(100))
        .build()
        .unwrap();
    let is_allowed =
        async |tokens| limiter.check(&policy, &alice).cost_of("tokens", tokens).await.unwrap().is_allowed();
    for _ in 0..300 {
        assert!(is_allowed(19).await);
    }
    assert!(!is_allowed(301).await, "5,700 tokens are used");
    assert!(is_allowed(300).await);
    assert!(!is_allowed(1).await);
    assert!(is_allowed(0).await, "calls have room");
}
