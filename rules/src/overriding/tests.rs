//! The changes that an override may make, and those that it may not.

use std::time::Duration;

use super::*;
use crate::algorithm::TokenBucket;
use crate::text::parse_rules;
use crate::validate::{Costs, validate};

const MINUTE: Duration = Duration::from_secs(60);

fn places(rules: &[Rule]) -> Vec<(Option<usize>, Field)> {
    let errors = validate_override(rules).expect_err("the rules are mistaken");
    errors.into_iter().map(|error| (error.position(), error.field())).collect()
}

#[test]
fn a_count_of_zero_is_allowed_whatever_the_other_rules_are() {
    let bucket = Rule::from_bucket(0, TokenBucket::new(MINUTE).with_initial(3));
    for closed in [Rule::sliding_window(0, 60 * MINUTE), Rule::fixed_window(0, MINUTE), bucket] {
        assert_eq!(validate_override(std::slice::from_ref(&closed)), Ok(()));
        assert_eq!(validate_override(&[Rule::sliding_window(10, MINUTE), closed]), Ok(()));
    }
}

#[test]
fn every_other_mistake_is_found_at_its_position_and_in_the_same_words() {
    let rules = [
        Rule::sliding_window(0, MINUTE),
        Rule::sliding_window(1, Duration::ZERO),
        Rule::sliding_window(0, Duration::ZERO),
        Rule::sliding_window(20, MINUTE),
        Rule::sliding_window(10, 2 * MINUTE),
    ];
    assert_eq!(places(&rules), [(Some(1), Field::Per), (Some(2), Field::Per), (Some(3), Field::Rule)]);
    assert_eq!(validate_override(&rules[1..2]), validate(&rules[1..2], Costs::Any));
}

#[test]
fn the_times_of_a_rule_with_a_count_of_zero_are_checked() {
    let reset_after = |time| Rule::from_bucket(0, TokenBucket::new(MINUTE).with_reset_after(time));
    assert_eq!(places(&[reset_after(Duration::MAX)]), [(Some(0), Field::ResetAfter)]);
    assert_eq!(places(&[reset_after(Duration::ZERO)]), [(Some(0), Field::ResetAfter)]);
    assert_eq!(validate_override(&[reset_after(MINUTE)]), Ok(()));
}

#[test]
fn the_number_of_rules_has_bounds() {
    assert_eq!(places(&[]), [(None, Field::Rule)]);
    let many: Vec<_> = (0..65).map(|n| Rule::sliding_window(0, (n + 1) * MINUTE)).collect();
    assert_eq!(places(&many), [(None, Field::Rule)]);
    assert_eq!(validate_override(&many[..32]), Ok(()));
}

#[test]
fn the_count_of_an_override_is_a_number() {
    assert_eq!(
        places(&[Rule::sliding_window(1, MINUTE), Rule::fixed_window(1, MINUTE).varying()]),
        [(Some(1), Field::Count)]
    );
}

/// Returns a policy of rules in text form, each with the label of its subject. The main subject has the empty label.
fn policy(rules: &[(&str, &str)]) -> Vec<EffectiveRule> {
    let label = |label: &str| (!label.is_empty()).then(|| label.to_owned());
    let own = |(position, (of, rule)): (usize, &(&str, &str))| EffectiveRule {
        label: label(of),
        rule: rule.parse().unwrap(),
        position: Some(position),
    };
    rules.iter().enumerate().map(own).collect()
}

fn captcha() -> Vec<EffectiveRule> {
    policy(&[
        ("", "prevent_duplicate per 5s"),
        ("network", "100 per 1h"),
        ("", "10 per 1m"),
        ("", "50 per 1d as daily"),
        ("network", "500 per 1d"),
    ])
}

/// A replacement, and the label of the subject whose rules it replaces.
type Change = (Option<&'static str>, Replacement);

fn one(id: impl Into<RuleId>, rule: &str) -> Change {
    (None, Replacement::Single(vec![(id.into(), rule.parse().unwrap())]))
}

fn subject(label: Option<&'static str>, rules: &str) -> Change {
    (label, Replacement::All(parse_rules(rules).unwrap()))
}

/// Returns the rules in force after the changes, or the mistakes of the first unsound change.
fn changed(policy: Vec<EffectiveRule>, changes: &[Change]) -> Result<Vec<EffectiveRule>, Vec<RuleError>> {
    changes.iter().try_fold(policy, |rules, (label, change)| {
        change.check(&rules, *label)?;
        Ok(change.apply(&rules, *label).expect("what is checked changes something"))
    })
}

/// Returns the rules in force, each with its position in the policy.
#[track_caller]
fn applied(changes: &[Change]) -> Vec<(String, Option<usize>)> {
    let effective = changed(captcha(), changes).unwrap();
    let shown = |effective: EffectiveRule| {
        let on = effective.label.map(|label| format!(" on {label}")).unwrap_or_default();
        (format!("{}{on}", effective.rule), effective.position)
    };
    effective.into_iter().map(shown).collect()
}

#[track_caller]
fn errors(changes: &[Change]) -> Vec<(Option<usize>, String)> {
    let errors = changed(captcha(), changes).expect_err("the change is mistaken");
    errors.into_iter().map(|error| (error.position(), error.to_string())).collect()
}

fn shown<const N: usize>(rules: [(&str, Option<usize>); N]) -> Vec<(String, Option<usize>)> {
    rules.map(|(rule, position)| (rule.to_owned(), position)).to_vec()
}

#[test]
fn one_rule_is_replaced_by_its_name_or_its_position() {
    let expected = |daily: &str| {
        shown([
            ("prevent_duplicate per 5s", Some(0)),
            ("100 per 1h on network", Some(1)),
            ("10 per 1m", Some(2)),
            (daily, Some(3)),
            ("500 per 1d on network", Some(4)),
        ])
    };
    assert_eq!(applied(&[]), expected("50 per 1d as daily"));
    assert_eq!(applied(&[one("daily", "80 per 1d")]), expected("80 per 1d as daily"));
    assert_eq!(applied(&[one(3, "80 per fixed 1h as hourly")]), expected("80 per fixed 1h as hourly"));
    assert_eq!(applied(&[one("daily", "0 per 1d")]), expected("0 per 1d as daily"));
}

#[test]
fn all_rules_on_a_subject_are_replaced_and_keep_position_and_name_where_the_window_is_the_same() {
    let expected = shown([
        ("70 per 1d as daily", Some(3)),
        ("100 per 1h on network", Some(1)),
        ("5 per 1h", None),
        ("500 per 1d on network", Some(4)),
    ]);
    assert_eq!(applied(&[subject(None, "70 per 1d, 5 per 1h")]), expected);
    let expected = shown([
        ("prevent_duplicate per 5s", Some(0)),
        ("9 per 1h on network", Some(1)),
        ("10 per 1m", Some(2)),
        ("50 per 1d as daily", Some(3)),
        ("20 per fixed 2h on network", None),
        ("90 per 1d as most on network", Some(4)),
    ]);
    assert_eq!(applied(&[subject(Some("network"), "9 per 1h, 20 per fixed 2h, 90 per 1d as most")]), expected);
}

#[test]
fn changes_are_applied_in_order_with_the_positions_of_the_policy() {
    let both = [subject(None, "70 per 1d"), one("daily", "80 per 1d"), (Some("network"), one(4, "9 per 1d").1)];
    let expected =
        shown([("80 per 1d as daily", Some(3)), ("100 per 1h on network", Some(1)), ("9 per 1d on network", Some(4))]);
    assert_eq!(applied(&both), expected);
    assert_eq!(
        errors(&[subject(None, "70 per 1d"), one(2, "1 per 1m")])[0].1,
        "the policy has no rule at the position 2; its positions are 3, 1, 4"
    );
}

/// Limits calls and tokens, as a gateway to a language model does.
fn gateway() -> Vec<EffectiveRule> {
    policy(&[
        ("", "60 per 1m"),
        ("", "20000 tokens per 1m as tokens"),
        ("org", "100000 tokens per 1m"),
        ("", "1000 per 1d"),
    ])
}

#[test]
fn rules_replace_those_of_their_units_alone() {
    let applied = |rules| -> Vec<_> {
        let (label, change) = subject(None, rules);
        assert_eq!(change.check(&gateway(), label), Ok(()), "{rules}");
        let effective = change.apply(&gateway(), label).unwrap();
        effective.into_iter().map(|own| (own.rule.to_string(), own.position)).collect()
    };
    let org = ("100000 tokens per 1m", Some(2));
    let tokens = ("20000 tokens per 1m as tokens", Some(1));
    assert_eq!(
        applied("50000 tokens per 1m, 9 tokens per 1s"),
        shown([
            ("60 per 1m", Some(0)),
            ("50000 tokens per 1m as tokens", Some(1)),
            org,
            ("1000 per 1d", Some(3)),
            ("9 tokens per 1s", None)
        ])
    );
    assert_eq!(applied("5 per 1h"), shown([("5 per 1h", None), tokens, org]));
    assert_eq!(
        applied("0 calls per 1m, 0 tokens per 1m"),
        shown([("0 per 1m", Some(0)), ("0 tokens per 1m as tokens", Some(1)), org])
    );
}

#[test]
fn a_unit_that_the_policy_has_not_is_a_mistake_that_names_its_units() {
    let text = |(label, change): Change| change.check(&gateway(), label).unwrap_err().remove(0).to_string();
    assert_eq!(text(subject(None, "5 tokns per 1m")), "the policy counts no `tokns`; did you mean `tokens`?");
    assert_eq!(text(subject(None, "5 bytes per 1m")), "the policy counts no `bytes`; its units are `calls`, `tokens`");
    let (label, calls_of_org) = subject(Some("org"), "5 per 1m");
    assert_eq!(calls_of_org.check(&gateway(), label), Ok(()));
    let kept = "the rule counts `tokens` and the new one `calls`; write `tokens` behind its count";
    assert_eq!(text(one("tokens", "5 per 1m")), kept);
    assert_eq!(
        text(one(0, "5 tokens per 1m")),
        "the rule counts `calls` and the new one `tokens`; write `calls` behind its count"
    );
}

#[test]
fn an_unknown_rule_is_a_mistake_with_a_suggestion() {
    let text = |change| errors(&[change]).remove(0).1;
    assert_eq!(text(one("dayly", "1 per 1d")), "the policy has no rule with the name `dayly`; did you mean `daily`?");
    assert_eq!(text(one("weekly", "1 per 1d")), "the policy has no rule with the name `weekly`; its names are `daily`");
    let unnamed = changed(policy(&[("", "1 per 1m")]), &[one("daily", "1 per 1d")]).unwrap_err();
    assert_eq!(
        unnamed[0].to_string(),
        "the policy has no rule with the name `daily`; its rules have no names; write a position: 0"
    );
    assert_eq!(text(one(9, "1 per 1d")), "the policy has no rule at the position 9; its positions are 0, 1, 2, 3, 4");
}

#[test]
fn an_unknown_subject_is_a_mistake_with_a_suggestion() {
    let text = |label| errors(&[subject(Some(label), "1 per 1m")]).remove(0).1;
    assert_eq!(text("netwrk"), "the policy has no rules on the subject `netwrk`; did you mean `network`?");
    assert_eq!(text("phone"), "the policy has no rules on the subject `phone`; its subjects are `network`");
    let main = changed(policy(&[("ip", "1 per 1m")]), &[subject(None, "1 per 1m")]).unwrap_err();
    assert_eq!(main[0].to_string(), "the policy has no rules on the main subject; write one of `ip`");
}

#[test]
fn every_mistake_in_the_new_rules_is_found() {
    let found = errors(&[subject(Some("network"), "5 per 0s, n per 1h")]);
    assert_eq!(found.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [Some(1), Some(4)]);
    assert_eq!(errors(&[subject(Some("network"), "20 per 1m, 10 per 2m")])[0].0, Some(1));
    assert_eq!(errors(&[one(2, "10 per 1d")])[0].1, "two rules count the same window of 1d; keep the stricter one");
    assert!(errors(&[(None, Replacement::All(Vec::new()))])[0].1.starts_with("an override needs at least one rule"));
}

#[test]
fn one_rule_may_be_changed_although_another_one_can_never_bind_then() {
    assert_eq!(applied(&[one("daily", "5 per 1d")])[3].0, "5 per 1d as daily");
    assert_eq!(applied(&[one(2, "1000 per 1m")])[2].0, "1000 per 1m");
}

#[test]
fn names_are_unique_across_all_subjects() {
    assert_eq!(errors(&[one(4, "5 per 1d as daily")])[0].0, Some(4));
}

#[test]
fn a_single_rule_that_the_subject_does_not_have_changes_nothing() {
    for missing in [one(1, "9 per 1h"), one(9, "9 per 1h"), one("hourly", "9 per 1h")] {
        assert_eq!(missing.1.apply(&captcha(), None), None);
    }
    let both =
        Replacement::Single(vec![(1.into(), "9 per 1h".parse().unwrap()), (2.into(), "8 per 1m".parse().unwrap())]);
    let counts = |rules: Vec<EffectiveRule>| rules.iter().map(|own| own.rule.count()).collect::<Vec<_>>();
    assert_eq!(counts(both.apply(&captcha(), None).unwrap()), [1, 100, 8, 50, 500]);
}

#[test]
fn a_rule_of_a_unit_that_the_policy_has_not_changes_nothing() {
    for (label, change) in [subject(None, "5 tokns per 1m"), one("tokens", "5 per 1m"), one(0, "5 tokens per 1m")] {
        assert!(change.unit_mistake(&gateway()).is_some());
        assert_eq!(change.apply(&gateway(), label), None, "{change:?}");
    }
    let (label, both) = subject(None, "5 per 1m, 5 tokns per 1m");
    let rules = |rules: Vec<EffectiveRule>| rules.iter().map(|own| own.rule.to_string()).collect::<Vec<_>>();
    let tokens = ["5 per 1m", "20000 tokens per 1m as tokens", "100000 tokens per 1m"];
    assert_eq!(rules(both.apply(&gateway(), label).unwrap()), tokens);
}
