//! Rules that replace those on several subjects of a policy at once, as a file does.

use std::collections::BTreeMap;

use super::{EffectiveRule, check, is_counted, replace_all, unknown_subject, unknown_unit};
use crate::error::RuleError;
use crate::rule::Rule;
use crate::validate::Checks;

/// Finds every mistake in rules that replace those on several subjects of a policy at once. Each new rule has the label of its
/// subject. They are checked as [`Replacement::check`](super::Replacement::check) does, but beside each other: a new rule need
/// not go with an old one that another new rule replaces.
///
/// # Errors
///
/// Returns all mistakes, each with the position of its rule in the list of new rules, or `None` if it is in no new rule.
///
/// # Examples
///
/// ```
/// use tallygate_rules::{EffectiveRule, parse_rules, validate_replacements};
///
/// let rules = |text| parse_rules(text).unwrap().into_iter().zip([None, Some("ip")]);
/// let own = |(position, (rule, label)): (usize, (_, Option<&str>))| {
///     EffectiveRule { label: label.map(str::to_owned), rule, position: Some(position) }
/// };
/// let policy: Vec<_> = rules("5 per 1m as a, 9 per 1h as b").enumerate().map(own).collect();
/// let new = |text| rules(text).map(|(rule, label)| (label, rule)).collect::<Vec<_>>();
///
/// assert_eq!(validate_replacements(&new("5 per 1m as b, 9 per 1h as a"), &policy), Ok(()));
/// let errors = validate_replacements(&new("5 per 1m, 9 pages per 1h"), &policy).unwrap_err();
/// assert_eq!(errors[0].position(), Some(1));
/// ```
pub fn validate_replacements(new: &[(Option<&str>, Rule)], rules: &[EffectiveRule]) -> Result<(), Vec<RuleError>> {
    let mut errors = Vec::new();
    let mut groups: RulesBySubject<'_> = BTreeMap::new();
    for (position, (label, rule)) in new.iter().enumerate() {
        let is_first = || new.iter().position(|(other, _)| other == label) == Some(position);
        if !rules.iter().any(|own| own.label.as_deref() == *label) {
            errors.extend(is_first().then(|| unknown_subject(*label, rules).in_rule(position)));
        } else if let Some(unit) = rule.unit().filter(|unit| !is_counted(unit, rules)) {
            errors.push(unknown_unit(unit, rules).in_rule(position));
        } else {
            groups.entry(*label).or_default().push((position, rule.clone()));
        }
    }
    if !groups.is_empty() {
        errors.extend(mistakes_together(&groups, rules));
    }
    RuleError::all_or_none(errors)
}

/// The new rules on each subject, by its label, with their positions in the list of all.
type RulesBySubject<'l> = BTreeMap<Option<&'l str>, Vec<(usize, Rule)>>;

/// Checks the rules that would be in force. The new ones stand behind those that stay, so that a mistake in one beside another
/// is found in the new one.
fn mistakes_together(groups: &RulesBySubject<'_>, rules: &[EffectiveRule]) -> Vec<RuleError> {
    let untouched = rules.iter().filter(|rule| !groups.contains_key(&rule.label.as_deref()));
    let mut effective: Vec<_> = untouched.cloned().collect();
    let mut placed = Vec::new();
    for (label, group) in groups {
        let own: Vec<_> = rules.iter().filter(|rule| rule.label.as_deref() == *label).cloned().collect();
        let new_rules: Vec<_> = group.iter().map(|(_, rule)| rule.clone()).collect();
        let (replaced, replacing) = replace_all(&own, *label, &new_rules);
        for (at, rule) in replaced.into_iter().enumerate() {
            let new = replacing.iter().find(|(place, _)| *place == at);
            match new.and_then(|(_, new)| group.get(*new)) {
                Some((position, _)) => placed.push((*position, rule)),
                None => effective.push(rule),
            }
        }
    }
    placed.sort_by_key(|(position, _)| *position);
    let (positions, placed): (Vec<_>, Vec<_>) = placed.into_iter().unzip();
    let start = effective.len();
    effective.extend(placed);
    let changed: Vec<_> = (start..effective.len()).collect();
    let found = check(&effective, &changed, Checks::Override).err().unwrap_or_default();
    let moved = |at: usize| positions.get(at.checked_sub(start)?).copied();
    found.into_iter().map(|mistake| mistake.moved(moved)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Field;
    use crate::text::parse_rules;

    fn labelled(rules: &[(Option<&'static str>, &str)]) -> Vec<(Option<&'static str>, Rule)> {
        rules.iter().map(|(label, rule)| (*label, parse_rules(rule).unwrap().remove(0))).collect()
    }

    fn policy(rules: &[(Option<&'static str>, &str)]) -> Vec<EffectiveRule> {
        let own = |(position, (label, rule)): (usize, (Option<&str>, Rule))| EffectiveRule {
            label: label.map(str::to_owned),
            rule,
            position: Some(position),
        };
        labelled(rules).into_iter().enumerate().map(own).collect()
    }

    fn mistakes(new: &[(Option<&'static str>, &str)]) -> Vec<(Option<usize>, Field)> {
        let own = policy(&[(None, "5 per 1m as a"), (None, "50 tokens per 1m as t"), (Some("ip"), "9 per 1h as b")]);
        let errors = validate_replacements(&labelled(new), &own).err().unwrap_or_default();
        errors.iter().map(|error| (error.position(), error.field())).collect()
    }

    #[test]
    fn names_may_move_from_one_subject_to_another() {
        assert_eq!(mistakes(&[(None, "6 per 1m as b"), (Some("ip"), "8 per 1h as a")]), []);
        assert_eq!(mistakes(&[(Some("ip"), "8 per 1h as a"), (None, "6 per 1m as c")]), []);
        // The own rule `a` stays.
        assert_eq!(mistakes(&[(Some("ip"), "8 per 1h as a")]), [(Some(0), Field::Name)]);
    }

    #[test]
    fn no_rules_replace_nothing_and_an_unknown_subject_alone_is_one_mistake() {
        assert_eq!(mistakes(&[]), []);
        assert_eq!(mistakes(&[(Some("id"), "8 per 1h")]), [(Some(0), Field::Subject)]);
    }

    #[test]
    fn each_mistake_is_in_the_rule_that_has_it_whatever_the_order_of_subjects_and_units_is() {
        let zero = (Some(1), Field::Per);
        assert_eq!(mistakes(&[(Some("ip"), "8 per 1h"), (None, "6 tokens per 0s"), (None, "6 per 1m")]), [zero]);
        assert_eq!(mistakes(&[(None, "6 per 1m"), (None, "6 tokens per 0s"), (Some("ip"), "8 per 1h")]), [zero]);
        // The own rule `t` stays, and stands behind those of the calls.
        assert_eq!(mistakes(&[(Some("ip"), "8 per 1h"), (None, "6 per 1m as t")]), [(Some(1), Field::Name)]);
    }

    #[test]
    fn unknown_subjects_and_units_are_found_beside_other_mistakes() {
        let new = [(Some("id"), "8 per 1h"), (Some("id"), "9 per 2h"), (None, "6 pages per 1m"), (None, "6 per 0s")];
        assert_eq!(mistakes(&new), [(Some(0), Field::Subject), (Some(2), Field::Unit), (Some(3), Field::Per)]);
    }
}
