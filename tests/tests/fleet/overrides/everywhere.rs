//! What holds on every backend for rules on the main subject.

use tallygate::{Ban, Decision, Limiter, Policy, Rejection, RejectionKind, Rule, Subject, TokenBucket, rate_limit};

use super::{HOUR, allowed, clear, denied, every_backend, hourly, override_rules, policy, room, subject};

every_backend!(
    other_counts_continue_with_the_tally,
    an_override_for_one_subject_goes_before_the_one_for_all,
    a_count_of_zero_closes_the_limit,
    a_closed_limit_reports_its_rules_and_admits_no_call,
    another_structure_starts_its_own_tally_and_keeps_the_old_one,
    the_rules_in_force_are_reported,
    mistaken_rules_are_refused_in_the_words_of_a_policy,
    policies_of_another_name_are_not_affected,
    rules_on_other_subjects_and_a_ban_stay_in_force,
    a_ban_that_is_counted_in_another_tally_ends_with_the_override,
    a_ban_by_hand_and_its_end_reach_the_tally_behind_the_override,
    a_message_stays_with_the_rule_that_it_was_written_for,
);

async fn other_counts_continue_with_the_tally(limiter: Limiter) {
    let policy = policy(3);
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
    override_rules(&limiter, [hourly(5)]).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 2);
    override_rules(&limiter, [hourly(6)]).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 1);
    clear(&limiter).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 0);
}

async fn an_override_for_one_subject_goes_before_the_one_for_all(limiter: Limiter) {
    let policy = policy(3);
    let vip = Subject::of("user").and("vip:1");
    let of_vip = || limiter.override_policy("over.ride").subject(&vip);
    let override_vip = async |count| of_vip().rules([hourly(count)]).allow_unknown().set().await.unwrap();
    override_vip(10).await;
    assert_eq!(room(&limiter, &policy, &vip).await, 10);
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
    override_rules(&limiter, [hourly(4)]).await;
    assert_eq!(room(&limiter, &policy, &vip).await, 0);
    assert_eq!(room(&limiter, &policy, &subject()).await, 1);
    override_vip(11).await;
    clear(&limiter).await;
    assert_eq!(room(&limiter, &policy, &vip).await, 1);
    override_vip(12).await;
    assert!(of_vip().clear().await.unwrap());
    assert_eq!(room(&limiter, &policy, &vip).await, 0);
}

async fn a_count_of_zero_closes_the_limit(limiter: Limiter) {
    let policy = policy(3);
    override_rules(&limiter, [Rule::fixed_window(9, HOUR), hourly(0)]).await;
    for cost in [0, 1, 5] {
        let Decision::Denied(denial) = limiter.check(&policy, &subject()).cost(cost).await.unwrap() else {
            panic!("the limit is closed")
        };
        assert_eq!((denial.retry_after(), denial.rule().unwrap().position()), (None, 1));
    }
    let Decision::Denied(_) = limiter.acquire(&policy, &subject()).await.unwrap() else { panic!("it is closed") };
    clear(&limiter).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
}

async fn a_closed_limit_reports_its_rules_and_admits_no_call(limiter: Limiter) {
    let ban = Ban::new(2, HOUR, HOUR);
    let policy = Policy::builder("over.ride").rule(hourly(3)).ban(ban).build().unwrap();
    assert!(allowed(&limiter, &policy).await);
    override_rules(&limiter, [Rule::fixed_window(9, HOUR), hourly(0)]).await;
    for cost in [0, 1, 10, 0, 1, 10] {
        for peek in [false, true] {
            let subject = subject();
            let check = limiter.check(&policy, &subject).cost(cost).report();
            let Decision::Denied(denial) = if peek { check.peek() } else { check }.await.unwrap() else {
                panic!("the limit is closed to a cost of {cost}")
            };
            assert_eq!((denial.kind(), denial.rule().unwrap().position()), (RejectionKind::Limited, 1));
        }
        let peeked = limiter.peek(&policy, &subject()).await.unwrap();
        let report: Vec<_> = peeked.report().iter().map(|rule| (rule.limit(), rule.remaining())).collect();
        assert_eq!((peeked.is_allowed(), report), (false, vec![(9, 9), (0, 0)]));
    }
    clear(&limiter).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 2, "nothing was counted, and no subject was banned");
}

async fn another_structure_starts_its_own_tally_and_keeps_the_old_one(limiter: Limiter) {
    let policy = policy(3);
    assert!(allowed(&limiter, &policy).await);
    let bucket = TokenBucket::new(HOUR).with_capacity(4).with_initial(2);
    override_rules(&limiter, [Rule::from_bucket(1, bucket)]).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 2);
    clear(&limiter).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 2);
}

async fn the_rules_in_force_are_reported(limiter: Limiter) {
    let policy = policy(3);
    override_rules(&limiter, [hourly(2), Rule::fixed_window(1, HOUR)]).await;
    let decision = limiter.check(&policy, &subject()).report().await.unwrap();
    let report: Vec<_> = decision.report().iter().map(|rule| (rule.limit(), rule.remaining())).collect();
    assert_eq!(report, [(2, 1), (1, 0)]);
    let Decision::Denied(denial) = limiter.check(&policy, &subject()).await.unwrap() else { panic!("one an hour") };
    let limiting = denial.rule().unwrap();
    assert_eq!((limiting.position(), limiting.rule()), (1, &Rule::fixed_window(1, HOUR)));
}

async fn mistaken_rules_are_refused_in_the_words_of_a_policy(limiter: Limiter) {
    // By a name of its own: other tests build policies whose rules have other places.
    let policy = Policy::builder("over.mistaken").rule(hourly(3)).build().unwrap();
    for rules in [vec![hourly(20), Rule::sliding_window(10, 2 * HOUR)], vec![hourly(1), hourly(2)]] {
        let refused = limiter.override_policy("over.mistaken").rules(rules.clone()).set().await.unwrap_err();
        assert_eq!(refused, Policy::builder("over.mistaken").rules(rules).build().unwrap_err());
    }
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
}

async fn policies_of_another_name_are_not_affected(limiter: Limiter) {
    let other = Policy::builder("over.ride2").rule(hourly(3)).build().unwrap();
    override_rules(&limiter, [hourly(1)]).await;
    assert_eq!(room(&limiter, &other, &subject()).await, 3);
}

async fn rules_on_other_subjects_and_a_ban_stay_in_force(limiter: Limiter) {
    let ban = Ban::new(3, HOUR, HOUR);
    let builder = Policy::builder("over.ride").rule_on("network", hourly(4)).rule(hourly(1)).ban(ban);
    let policy = builder.build().unwrap();
    let network = Subject::of("10.0.0.0/24");
    let call = async |user: &str| {
        let decision = limiter.check(&policy, &Subject::of(user)).subject("network", &network).report().await.unwrap();
        let report: Vec<_> = decision.report().iter().map(|rule| (rule.limit(), rule.remaining())).collect();
        let Decision::Denied(denial) = decision else { return (None, report) };
        (Some((denial.kind(), denial.rule().map(|rule| rule.position()))), report)
    };
    assert_eq!(call("a").await, (None, vec![(4, 3), (1, 0)]));
    override_rules(&limiter, [hourly(2)]).await;
    assert_eq!(call("a").await, (None, vec![(4, 2), (2, 0)]));
    assert_eq!(call("b").await, (None, vec![(4, 1), (2, 1)]));
    // With more rules on the main subject than there were.
    override_rules(&limiter, [hourly(9), Rule::fixed_window(8, HOUR)]).await;
    assert_eq!(call("c").await, (None, vec![(4, 0), (9, 8), (8, 7)]));
    for _ in 0..3 {
        assert_eq!(call("c").await.0, Some((RejectionKind::Limited, Some(0))), "the network has made its four calls");
    }
    assert_eq!(call("c").await, (Some((RejectionKind::Banned, None)), vec![(4, 0), (9, 8), (8, 7)]));
    assert_eq!(call("d").await.0, Some((RejectionKind::Limited, Some(0))), "the network is not banned");
}

async fn a_ban_that_is_counted_in_another_tally_ends_with_the_override(limiter: Limiter) {
    let ban = Ban::new(3, HOUR, HOUR);
    let policy = Policy::builder("over.ride").rule(hourly(5)).ban(ban).build().unwrap();
    override_rules(&limiter, [hourly(4)]).await;
    limiter.check(&policy, &subject()).ban(HOUR).await.unwrap();
    clear(&limiter).await;
    assert_eq!(denied(&limiter, &policy).await.kind(), RejectionKind::Banned, "another count keeps the tally");
    override_rules(&limiter, [Rule::fixed_window(5, HOUR)]).await;
    assert!(allowed(&limiter, &policy).await, "another structure has a tally of its own");
    limiter.check(&policy, &subject()).reset().await.unwrap();
    clear(&limiter).await;
    assert!(allowed(&limiter, &policy).await, "a reset reaches both");
}

async fn a_ban_by_hand_and_its_end_reach_the_tally_behind_the_override(limiter: Limiter) {
    let policy = Policy::builder("over.ride").rule(hourly(5)).ban(Ban::new(3, HOUR, HOUR)).build().unwrap();
    let subject = subject();
    let check = || limiter.check(&policy, &subject);
    let other_structure = || override_rules(&limiter, [Rule::fixed_window(5, HOUR)]);
    let banned = async || {
        let decision = check().await.unwrap();
        matches!(decision, Decision::Denied(denial) if denial.kind() == RejectionKind::Banned)
    };
    other_structure().await;
    check().ban(HOUR).await.unwrap();
    assert!(banned().await);
    clear(&limiter).await;
    assert!(banned().await, "the ban holds without the override, too");
    other_structure().await;
    check().unban().await.unwrap();
    assert!(!banned().await);
    clear(&limiter).await;
    assert!(!banned().await, "its end does, too");
}

#[rate_limit(
    name = "over.messages",
    rule(count = 1, per = "1h", name = "hourly", message = "once an hour"),
    rule(count = 100, per = "1d", message = "a hundred a day"),
    message = "{@count} per {@per}: {@rule}",
    limiter = limiter
)]
async fn limited(limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

async fn a_message_stays_with_the_rule_that_it_was_written_for(limiter: Limiter) {
    let rejected = async || {
        let rejection = limited(&limiter).await.unwrap_err();
        let name = rejection.rule().unwrap().name().map(str::to_owned);
        (rejection.to_string(), name)
    };
    let set = async |text: &str| limiter.override_policy("over.messages").text(text).set().await.unwrap();
    let hourly_named = || Some("hourly".to_owned());
    limited(&limiter).await.unwrap();
    assert_eq!(rejected().await, ("once an hour".to_owned(), hourly_named()));
    set("1 per 1d").await;
    assert_eq!(rejected().await, ("a hundred a day".to_owned(), None));
    set("1 per fixed 1h, 1000 per 1d").await;
    limited(&limiter).await.unwrap();
    assert_eq!(rejected().await, ("1 per 1h: 1 per fixed 1h".to_owned(), None));
    set("3 per 1d, 2 per 1h").await;
    limited(&limiter).await.unwrap();
    assert_eq!(rejected().await, ("once an hour".to_owned(), hourly_named()));
    set("1 = 3 per 1d").await;
    assert_eq!(rejected().await, ("once an hour".to_owned(), hourly_named()));
    set("hourly = 3 per 2h").await;
    limited(&limiter).await.unwrap();
    assert_eq!(rejected().await, ("once an hour".to_owned(), hourly_named()));
}
