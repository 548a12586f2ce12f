//! What a file changes of the rules of a program.

use std::sync::Arc;

use tallygate::{Decision, Limiter, Policy, Rejection, RejectionKind, Subject, rate_limit};
use tallygate_harness::bodies::Bodies;
use tokio::sync::Semaphore;

use super::{apply, every_backend, file, hourly, room, subject, try_apply};

every_backend!(
    a_file_replaces_the_rules_of_a_function,
    a_file_replaces_the_rules_of_the_units_that_it_names,
    a_file_changes_a_function_that_was_called_before,
    counts_change_and_what_was_counted_stays,
    another_longest_window_starts_new_tallies_and_the_old_ones_are_kept,
    a_policy_that_the_file_no_longer_has_returns_to_its_own_rules,
    rules_on_subjects_that_the_file_does_not_name_stay_in_force,
    rules_on_another_subject_are_named_by_its_key,
    a_file_may_move_a_name_to_another_subject_and_its_mistakes_are_at_their_rules,
    an_override_goes_before_the_file,
    a_single_rule_of_the_file_can_be_overridden_by_its_name,
    counts_of_calls_give_way_to_the_file,
    a_rule_like_one_of_the_function_keeps_its_message,
    duplicates_that_are_released_give_way_to_those_of_the_file,
    a_refused_file_changes_nothing,
    a_file_holds_for_its_limiter_alone,
    concurrent_calls_are_limited_as_the_file_says,
    a_file_puts_a_function_in_shadow_or_enforces_it,
);

async fn a_file_puts_a_function_in_shadow_or_enforces_it(limiter: Limiter) {
    #[rate_limit(name = "config.shadow", rule(count = 1, per = "1h"), limiter = limiter)]
    async fn enforced(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    #[rate_limit(name = "config.tried", rule(count = 1, per = "1h"), limiter = limiter, shadow)]
    async fn tried(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    apply(
        &limiter,
        "policy.'config.shadow'.shadow = true\npolicy.'config.tried' = { shadow = false, rules = ['2 per 1h'] }",
    );
    for _ in 0..3 {
        enforced(&limiter).await.unwrap();
    }
    tried(&limiter).await.unwrap();
    tried(&limiter).await.unwrap();
    tried(&limiter).await.unwrap_err();
    limiter.override_policy("config.shadow").enforced().set().await.unwrap();
    enforced(&limiter).await.unwrap_err();
    limiter.override_policy("config.shadow").clear().await.unwrap();
    enforced(&limiter).await.unwrap();
    apply(&limiter, "");
    enforced(&limiter).await.unwrap_err();
    tried(&limiter).await.unwrap();
}

async fn a_file_replaces_the_rules_of_a_function(limiter: Limiter) {
    #[rate_limit(name = "config.sms", key = "sms:{phone}", rule(count = 1, per = "60s"), limiter = limiter)]
    async fn send(limiter: &Limiter, phone: &str) -> Result<(), Rejection> {
        Ok(())
    }
    let applied = apply(
        &limiter,
        "[policy.'config.sms']\nkey = 'sms:{phone}'\nrules = [{ count = 3, per = '60s', name = 'short' }, '9 per 1d']",
    );
    for _ in 0..3 {
        send(&limiter, "138").await.unwrap();
    }
    let rejection = send(&limiter, "138").await.unwrap_err();
    assert_eq!((rejection.rule().unwrap().name(), rejection.rule().unwrap().count()), (Some("short"), 3));
    send(&limiter, "139").await.unwrap();
    applied.require_known().unwrap();
}

async fn a_file_replaces_the_rules_of_the_units_that_it_names(limiter: Limiter) {
    #[rate_limit(
        name = "config.chat",
        rule(count = 2, per = "1h"),
        rule(count = 100, per = "1h", unit = "tokens"),
        unit("tokens", cost = tokens),
        limiter = limiter
    )]
    async fn chat(limiter: &Limiter, tokens: u64) -> Result<(), Rejection> {
        Ok(())
    }
    let mistake = try_apply(&limiter, &file("config.chat", "'9 per 1h', '9 tokns per 1h'")).unwrap_err().to_string();
    assert!(mistake.ends_with("the policy counts no `tokns`; did you mean `tokens`?"), "{mistake}");
    assert!(mistake.starts_with("line 2, column 22: "), "{mistake}");
    apply(&limiter, &file("config.chat", "{ count = 30, per = '1h', unit = 'tokens' }"));
    let rejection = chat(&limiter, 31).await.unwrap_err();
    assert_eq!(rejection.rule().unwrap().count(), 30);
    chat(&limiter, 30).await.unwrap();
    chat(&limiter, 0).await.unwrap();
    let rejection = chat(&limiter, 0).await.unwrap_err();
    assert_eq!(rejection.rule().unwrap().count(), 2);
}

async fn a_file_changes_a_function_that_was_called_before(limiter: Limiter) {
    #[rate_limit(name = "config.before", rule(count = 1, per = "1h"), limiter = limiter)]
    async fn call(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    call(&limiter).await.unwrap();
    call(&limiter).await.unwrap_err();
    apply(&limiter, &file("config.before", "'2 per 1h'")).require_known().unwrap();
    call(&limiter).await.unwrap();
    call(&limiter).await.unwrap_err();
}

async fn counts_change_and_what_was_counted_stays(limiter: Limiter) {
    let policy = Policy::builder("config.counts").rule(hourly(3)).build().unwrap();
    assert_eq!(room(&limiter, &policy).await, 3);
    apply(&limiter, &file("config.counts", "'5 per 1h'"));
    assert_eq!(room(&limiter, &policy).await, 2);
    apply(&limiter, &file("config.counts", "'6 per 60m'"));
    assert_eq!(room(&limiter, &policy).await, 1);
    apply(&limiter, &file("config.counts", "'4 per 1h', '3 per 1s'"));
    assert_eq!(room(&limiter, &policy).await, 0);
}

async fn another_longest_window_starts_new_tallies_and_the_old_ones_are_kept(limiter: Limiter) {
    let policy = Policy::builder("config.windows").rule(hourly(3)).build().unwrap();
    assert_eq!(room(&limiter, &policy).await, 3);
    apply(&limiter, &file("config.windows", "'4 per 2h'"));
    assert_eq!(room(&limiter, &policy).await, 4);
    apply(&limiter, &file("config.windows", "'4 per fixed 1h'"));
    assert_eq!(room(&limiter, &policy).await, 4);
    apply(&limiter, &file("config.windows", "'4 per 1h'"));
    assert_eq!(room(&limiter, &policy).await, 1);
}

async fn a_policy_that_the_file_no_longer_has_returns_to_its_own_rules(limiter: Limiter) {
    let policy = Policy::builder("config.gone").rule(hourly(1)).build().unwrap();
    apply(&limiter, &file("config.gone", "'3 per 1h'"));
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    apply(&limiter, "");
    assert_eq!(room(&limiter, &policy).await, 0);
}

fn by_network(name: &'static str) -> Policy {
    Policy::builder(name).rule_on("{ip}", hourly(2)).rule(hourly(5)).build().unwrap()
}

/// Calls until one is denied, and returns how many were admitted and the position of the rule that denied.
async fn room_by_network(limiter: &Limiter, policy: &Policy) -> (usize, Option<usize>) {
    let network = Subject::of("10.0.0.0/24");
    let mut admitted = 0;
    loop {
        match limiter.check(policy, &subject()).subject("{ip}", &network).await.unwrap() {
            Decision::Allowed(_) => admitted += 1,
            Decision::Denied(denial) => return (admitted, denial.rule().map(|rule| rule.position())),
        }
    }
}

async fn rules_on_subjects_that_the_file_does_not_name_stay_in_force(limiter: Limiter) {
    let policy = by_network("config.others");
    apply(&limiter, &file("config.others", "'9 per 1h'"));
    assert_eq!(room_by_network(&limiter, &policy).await, (2, Some(0)));
}

async fn rules_on_another_subject_are_named_by_its_key(limiter: Limiter) {
    let policy = by_network("config.networks");
    apply(&limiter, &file("config.networks", "{ count = 9, per = '1h', key = '{ip}' }"));
    assert_eq!(room_by_network(&limiter, &policy).await, (5, Some(1)));
    apply(&limiter, &file("config.networks", "{ count = 6, per = '1h', key = '{ip}' }, '20 per 1h'"));
    assert_eq!(room_by_network(&limiter, &policy).await, (1, Some(0)));
    let error = try_apply(&limiter, &file("config.networks", "{ count = 9, per = '1h', key = '{pi}' }")).unwrap_err();
    let message = "line 2, column 41: the policy has no rules on the subject `{pi}`; did you mean `{ip}`?";
    assert_eq!(error.to_string(), message);
}

async fn an_override_goes_before_the_file(limiter: Limiter) {
    let policy = Policy::builder("config.overridden").rule(hourly(1)).build().unwrap();
    apply(&limiter, &file("config.overridden", "'2 per 1h'"));
    let overriding = || limiter.override_policy("config.overridden");
    overriding().text("5 per 1h").set().await.unwrap();
    assert_eq!(room(&limiter, &policy).await, 5);
    apply(&limiter, &file("config.overridden", "'8 per 1h'"));
    assert_eq!(room(&limiter, &policy).await, 0);
    assert!(overriding().clear().await.unwrap());
    assert_eq!(room(&limiter, &policy).await, 3);
}

async fn a_single_rule_of_the_file_can_be_overridden_by_its_name(limiter: Limiter) {
    let policy = Policy::builder("config.single").rule(hourly(1).named("short")).build().unwrap();
    apply(&limiter, &file("config.single", "'2 per 1h', '9 per 1d as daily'"));
    let overriding = limiter.override_policy("config.single").text("short = 4 per 1h");
    overriding.set().await.unwrap();
    assert_eq!(room(&limiter, &policy).await, 4);
}

async fn counts_of_calls_give_way_to_the_file(limiter: Limiter) {
    #[rate_limit(name = "config.plans", key = "{user}", rule(count = plan, per = "1h"), limiter = limiter)]
    async fn call(limiter: &Limiter, user: &str, plan: u64) -> Result<(), Rejection> {
        Ok(())
    }
    apply(&limiter, "[policy.'config.plans']\nkey = '{user}'\nrules = ['2 per 1h']");
    for plan in [1, 7] {
        call(&limiter, "alice", plan).await.unwrap();
    }
    assert_eq!(call(&limiter, "alice", 9).await.unwrap_err().rule().unwrap().count(), 2);
}

async fn a_rule_like_one_of_the_function_keeps_its_message(limiter: Limiter) {
    #[rate_limit(
        name = "config.messages",
        rule(count = 9, per = "1h", message = "{@count} an hour"),
        rule(count = 99, per = "1d"),
        limiter = limiter
    )]
    async fn call(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    apply(&limiter, &file("config.messages", "'5 per 1d', '1 per 1h'"));
    call(&limiter).await.unwrap();
    assert_eq!(call(&limiter).await.unwrap_err().to_string(), "1 an hour");
}

async fn duplicates_that_are_released_give_way_to_those_of_the_file(limiter: Limiter) {
    #[rate_limit(
        name = "config.released",
        key = "{user}",
        rule(count = 9, per = "1h"),
        prevent_duplicate(per = "1h", release_if = |succeeds: &Result<bool, Rejection>| matches!(succeeds, Ok(false))),
        limiter = limiter
    )]
    async fn submit(limiter: &Limiter, user: &str, succeeds: bool) -> Result<bool, Rejection> {
        Ok(succeeds)
    }
    let duplicates_of = async |user: &str| {
        assert!(!submit(&limiter, user, false).await.unwrap());
        assert!(submit(&limiter, user, true).await.unwrap());
        let rejection = submit(&limiter, user, true).await.unwrap_err();
        rejection.rule().unwrap().rule().to_string()
    };
    apply(&limiter, &file("config.released", "'prevent_duplicate per 30m', '7 per 1h'"));
    assert_eq!(duplicates_of("alice").await, "prevent_duplicate per 30m");
    // They count a subject of their own, which this file does not name.
    apply(&limiter, &file("config.released", "'7 per 1h'"));
    assert_eq!(duplicates_of("bob").await, "prevent_duplicate per 1h");
    limiter
        .override_policy("config.released")
        .label("prevent_duplicate")
        .text("prevent_duplicate per 20m")
        .set()
        .await
        .unwrap();
    assert_eq!(duplicates_of("carol").await, "prevent_duplicate per 20m");
}

async fn a_refused_file_changes_nothing(limiter: Limiter) {
    let one = Policy::builder("config.half.one").rule(hourly(1)).build().unwrap();
    let two = by_network("config.half.two");
    apply(&limiter, &file("config.half.one", "'2 per 1h'"));
    let text = "[policy.'config.half.one']\nrules = ['7 per 1h']\n\
                [policy.'config.half.two']\nkey = 'x'\nrules = [{ count = 1, per = '1h', key = 'all' }]";
    let error = try_apply(&limiter, text).unwrap_err();
    let found: Vec<_> = error.mistakes().iter().map(|mistake| (mistake.line(), mistake.column())).collect();
    assert_eq!(found, [(4, 7), (5, 41)], "{error}");
    assert_eq!(room(&limiter, &one).await, 2);
    drop(two);
}

async fn a_file_may_move_a_name_to_another_subject_and_its_mistakes_are_at_their_rules(limiter: Limiter) {
    let policy = Policy::builder("config.moved")
        .rule_on("{ip}", hourly(2).named("a"))
        .rule(hourly(5).named("b"))
        .rule_on("{id}", hourly(7).named("c"))
        .build()
        .unwrap();
    let main = subject();
    let id = Subject::of("7");
    let network = Subject::of("10.0.0.0/24");
    let text = |last: &str| {
        format!(
            "[policy.'config.moved']\nrules = [\n'9 per 1h as a',\n{{ count = 1, per = '1h', key = '{{ip}}', name = 'b' }},\n{last}]"
        )
    };
    apply(&limiter, &text(""));
    let check = || limiter.check(&policy, &main).subject("{ip}", &network).subject("{id}", &id);
    assert!(check().await.unwrap().is_allowed());
    let denial = check().await.unwrap().into_result().unwrap_err();
    assert_eq!(denial.rule().unwrap().rule().name(), Some("b"));
    let error = try_apply(&limiter, &text("'99 per 1d as c'")).unwrap_err();
    let found: Vec<_> = error.mistakes().iter().map(|mistake| (mistake.line(), mistake.column())).collect();
    assert_eq!(found, [(5, 1)], "{error}");
}

async fn a_file_holds_for_its_limiter_alone(limiter: Limiter) {
    let policy = Policy::builder("config.alone").rule(hourly(1)).build().unwrap();
    apply(&limiter.clone(), &file("config.alone", "'2 per 1h'"));
    assert_eq!(room(&Limiter::in_memory(), &policy).await, 1);
    assert_eq!(room(&limiter, &policy).await, 2);
}

async fn concurrent_calls_are_limited_as_the_file_says(limiter: Limiter) {
    #[rate_limit(
        name = "config.running",
        key = "{user}",
        concurrency(limit = 1, lease = "30s"),
        rule(count = 100, per = "1h"),
        limiter = limiter
    )]
    async fn export(limiter: Limiter, user: &str, bodies: Bodies, over: Arc<Semaphore>) -> Result<(), Rejection> {
        let _running = bodies.begin();
        over.acquire().await.expect("never closed").forget();
        Ok(())
    }
    let (bodies, over) = (Bodies::new(), Arc::new(Semaphore::new(0)));
    let call = || tokio::spawn(export(limiter.clone(), "alice", bodies.clone(), Arc::clone(&over)));
    apply(&limiter, "[policy.'config.running']\nkey = '{user}'\nrules = ['3 concurrent lease 10s', '50 per 1h']");
    let calls = [call(), call(), call()];
    bodies.until_most(3).await;
    let rejection = call().await.unwrap().unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Concurrency);
    assert_eq!(rejection.rule().unwrap().rule().to_string(), "3 concurrent lease 10s");
    over.add_permits(calls.len());
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(bodies.most(), 3);
}
