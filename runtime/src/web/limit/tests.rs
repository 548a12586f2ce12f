//! The policies that limits hold.

use std::time::Duration;

use tallygate_rules::Rule;

use super::*;

#[test]
fn a_policy_that_only_a_limit_holds_is_known() {
    let rule = Rule::sliding_window(1, Duration::from_secs(60));
    let policy = Policy::builder("web::limit::only").rule(rule).build().unwrap();
    let limit = limit(&policy.with_counts([7]), "{@ip}").unwrap();
    drop(policy);
    assert_eq!(Limiter::policy("web::limit::only").unwrap().key(), Some("{@ip}"));
    #[cfg(feature = "config")]
    {
        let file = crate::config::Policies::from_toml("[policy.'web::limit::only']\nrules = ['2 per 1h']").unwrap();
        assert_eq!(Limiter::in_memory().apply(&file).unwrap().unknown(), []);
    }
    drop(limit);
}

#[test]
fn the_policy_of_a_limit_knows_how_its_subjects_are_written() {
    let minute = Duration::from_secs(60);
    let rules = Policy::builder("api").rule(Rule::sliding_window(1, minute));
    let policy = rules.rule_on("network", Rule::sliding_window(2, minute)).key("by hand").build().unwrap();
    let limit = limit(&policy, "{@ip}").unwrap().subject("network", "{@ip:subnet}").unwrap();
    let known = &limit.settings.keyed.policy;
    assert_eq!((known.key(), known.templates().get(Some("network"))), (Some("{@ip}"), Some("{@ip:subnet}")));
    assert_eq!((known, policy.key()), (&policy, Some("by hand")));
}
