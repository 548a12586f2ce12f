//! A rejection tells rules apart by their names.

use tallygate::{Limiter, Policy, Rejection, Rule, rate_limit};

use crate::grammar::denial;

#[rate_limit(
    prevent_duplicate,
    rule(count = 1, per = "1m", name = "burst"),
    rule(count = 1, per = "1h", name = "hourly quota", algorithm = "fixed_window"),
    limiter = limiter
)]
async fn named(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_rule_that_denies_tells_its_name() {
    let limiter = Limiter::in_memory();
    named(&limiter).await.unwrap();
    let rejection = denial(named(&limiter).await);
    assert_eq!((rejection.rule().unwrap().position(), rejection.rule().unwrap().name()), (0, None));
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let rejection = denial(named(&limiter).await);
    assert_eq!(rejection.rule().unwrap().name(), Some("hourly quota"));
}

#[test]
fn rules_of_one_name_are_refused_by_hand_too() {
    let rule = |minutes| Rule::sliding_window(minutes, std::time::Duration::from_secs(60 * minutes)).named("quota");
    let error = Policy::builder("api").rule(rule(1)).rule(rule(2)).build().unwrap_err();
    assert!(error.to_string().contains("rule 1: two rules have the name `quota`"), "{error}");
}
