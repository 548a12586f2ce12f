//! Overrides: rules that replace those of a policy at run time.

#[cfg(test)]
mod tests;

use crate::counted_subject::CountedSubject;
use crate::error::{Field, RuleError, RuleMistake};
use crate::rule::Rule;
use crate::suggestion::nearest;
use crate::validate::{BindingCheck, Checks, Costs, ZeroCounts};

/// Identifies a rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleId {
    /// By its name.
    Name(String),
    /// By its position in the policy, counted from 0.
    Position(usize),
}

/// A change to the rules of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleChange {
    /// Replaces one rule. The new rule keeps the name of the old one unless it has its own.
    One {
        /// The rule to replace.
        id: RuleId,
        /// The new rule.
        rule: Rule,
    },
    /// Replaces all rules on one subject.
    ///
    /// The new rules take the places of the old ones; if there are more, the rest follows at the end. A new rule with the
    /// [same window](Rule::has_same_window) as a rule of the policy on this subject stands for it: it has its position,
    /// and keeps its name unless it has its own.
    Subject {
        /// The label of the subject, or `None` for the main subject.
        label: Option<String>,
        /// The new rules.
        rules: Vec<Rule>,
    },
}

/// A rule that is in force in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectiveRule {
    /// The label of the subject that it counts, or `None` for the main subject.
    pub label: Option<String>,
    /// The rule.
    pub rule: Rule,
    /// The position of the policy's own rule for which it stands, or that it is.
    pub position: Option<usize>,
}

impl From<usize> for RuleId {
    fn from(position: usize) -> Self {
        Self::Position(position)
    }
}

impl From<&str> for RuleId {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for RuleId {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

/// Finds every mistake in rules that override all rules on one subject: those that [`validate`](crate::validate()) finds,
/// with two differences.
///
/// * A count of 0 is allowed. While such a rule is in force, no call is admitted.
/// * A count that [each call gives](Rule::varying) is a mistake.
///
/// # Errors
///
/// Returns all mistakes, in the order of the rules.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate_rules::{Costs, Rule, validate, validate_override};
///
/// let closed = [Rule::sliding_window(0, Duration::from_secs(60))];
/// assert!(validate_override(&closed).is_ok());
/// assert!(validate(&closed, Costs::Any).is_err());
/// ```
pub fn validate_override(rules: &[Rule]) -> Result<(), Vec<RuleError>> {
    let varying: Vec<_> = (0..rules.len()).filter_map(|at| Some(check_count(&rules[at])?.in_rule(at))).collect();
    let rules: Vec<_> = rules.iter().map(|rule| (CountedSubject::labelled(None), rule)).collect();
    let found = OVERRIDE_OF_SUBJECT.run(&rules).err();
    let mut errors: Vec<_> = varying.into_iter().chain(found.into_iter().flatten()).collect();
    errors.sort_by_key(RuleError::position);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Applies changes to the rules of a policy, given with the labels of their subjects, and returns the rules that are then
/// in force.
///
/// The changes are applied in order. Names and positions are those of the policy, also after an earlier change.
///
/// The new rules are checked like those of [`validate_override`], except that after a change of one rule, a rule may be
/// unable to bind: raising one limit must not require removing another one.
///
/// # Errors
///
/// Returns all mistakes of the first mistaken change: a rule or a subject that the policy does not have, or mistakes in
/// the new rules. Positions are those in the list of rules that would be in force.
///
/// # Examples
///
/// ```
/// use tallygate_rules::{RuleChange, override_rules, parse_rules};
///
/// let rules = parse_rules("1 per 1m, 10 per 1d as daily").unwrap();
/// let policy: Vec<_> = rules.into_iter().map(|rule| (None, rule)).collect();
///
/// let raise = |name: &str| RuleChange::One { id: name.into(), rule: "50 per 1d".parse().unwrap() };
/// let effective = override_rules(&policy, &[raise("daily")]).unwrap();
/// assert_eq!(effective[1].rule.to_string(), "50 per 1d as daily");
///
/// let errors = override_rules(&policy, &[raise("dayly")]).unwrap_err();
/// assert_eq!(errors[0].to_string(), "the policy has no rule with the name `dayly`; did you mean `daily`?");
/// ```
pub fn override_rules(
    policy: &[(Option<String>, Rule)],
    changes: &[RuleChange],
) -> Result<Vec<EffectiveRule>, Vec<RuleError>> {
    let own = |(position, (label, rule)): (usize, &(Option<String>, Rule))| EffectiveRule {
        label: label.clone(),
        rule: rule.clone(),
        position: Some(position),
    };
    let mut effective = policy.iter().enumerate().map(own).collect();
    for change in changes {
        effective = match change {
            RuleChange::One { id, rule } => replace_one(effective, id, rule)?,
            RuleChange::Subject { label, rules } => replace_subject(policy, &effective, label.as_deref(), rules)?,
        };
    }
    Ok(effective)
}

/// The checks of rules that replace all rules on one subject. What is known of the calls of a policy is not known here.
const OVERRIDE_OF_SUBJECT: Checks =
    Checks { zero_counts: ZeroCounts::Allowed, binding: BindingCheck::Required(Costs::Recounted) };

/// The checks of all rules after a change.
const OVERRIDDEN: Checks = Checks { zero_counts: ZeroCounts::Allowed, binding: BindingCheck::Optional };

fn replace_one(
    mut effective: Vec<EffectiveRule>,
    id: &RuleId,
    rule: &Rule,
) -> Result<Vec<EffectiveRule>, Vec<RuleError>> {
    let is_meant = |effective: &EffectiveRule| match id {
        RuleId::Name(name) => effective.rule.name() == Some(name),
        RuleId::Position(position) => effective.position == Some(*position),
    };
    let Some(place) = effective.iter().position(is_meant) else {
        return Err(vec![unknown_rule(id, &effective).in_policy()]);
    };
    effective[place].rule = named_like(rule, &effective[place].rule);
    check(effective, &[place], OVERRIDDEN)
}

fn replace_subject(
    policy: &[(Option<String>, Rule)],
    effective: &[EffectiveRule],
    label: Option<&str>,
    rules: &[Rule],
) -> Result<Vec<EffectiveRule>, Vec<RuleError>> {
    let is_on_subject = |effective: &EffectiveRule| effective.label.as_deref() == label;
    if !effective.iter().any(is_on_subject) {
        return Err(vec![unknown_subject(label, effective).in_policy()]);
    }
    if rules.is_empty() {
        let message = "an override needs at least one rule; to admit nothing, write a count of 0, like `0 per 1h`";
        return Err(vec![RuleMistake::new(Field::Rule, message).in_policy()]);
    }
    let mut new = rules.iter().map(|rule| {
        let own =
            |(_, (of, own)): &(usize, &(Option<String>, Rule))| of.as_deref() == label && own.has_same_window(rule);
        let own = policy.iter().enumerate().find(own);
        EffectiveRule {
            label: label.map(str::to_owned),
            rule: own.map_or_else(|| rule.clone(), |(_, (_, own))| named_like(rule, own)),
            position: own.map(|(position, _)| position),
        }
    });
    let mut changed = Vec::new();
    let mut replaced = Vec::new();
    for old in effective {
        if !is_on_subject(old) {
            replaced.push(old.clone());
        } else if let Some(rule) = new.next() {
            changed.push(replaced.len());
            replaced.push(rule);
        }
    }
    changed.extend(replaced.len()..replaced.len() + new.len());
    replaced.extend(new);
    check(replaced, &changed, OVERRIDE_OF_SUBJECT)
}

/// Checks the changed rules among themselves, and then all rules.
fn check(
    effective: Vec<EffectiveRule>,
    changed: &[usize],
    checks: Checks,
) -> Result<Vec<EffectiveRule>, Vec<RuleError>> {
    let mut errors: Vec<_> =
        changed.iter().filter_map(|&at| Some(check_count(&effective[at].rule)?.in_rule(at))).collect();
    let subjects = effective.iter().map(|effective| CountedSubject::labelled(effective.label.as_deref()));
    let rules: Vec<_> = subjects.zip(effective.iter().map(|effective| &effective.rule)).collect();
    errors.extend(OVERRIDDEN.run(&rules).err().into_iter().flatten());
    if errors.is_empty() {
        let rules: Vec<_> = changed.iter().map(|&at| rules[at].clone()).collect();
        let found = checks.run(&rules).err().into_iter().flatten();
        errors.extend(found.map(|error| error.moved(|position| changed.get(position).copied())));
    }
    errors.sort_by_key(RuleError::position);
    if errors.is_empty() { Ok(effective) } else { Err(errors) }
}

/// Checks that the count of an overriding rule is a number.
fn check_count(rule: &Rule) -> Option<RuleMistake> {
    rule.is_varying()
        .then(|| RuleMistake::new(Field::Count, "the count of an override is a number; write it in place of `n`"))
}

fn named_like(rule: &Rule, old: &Rule) -> Rule {
    match (rule.name(), old.name()) {
        (None, Some(name)) => rule.clone().named(name.to_owned()),
        _ => rule.clone(),
    }
}

fn unknown_rule(id: &RuleId, effective: &[EffectiveRule]) -> RuleMistake {
    let positions: Vec<_> = effective.iter().filter_map(|effective| Some(effective.position?.to_string())).collect();
    let positions = positions.join(", ");
    match id {
        RuleId::Name(name) => {
            let names: Vec<_> = effective.iter().filter_map(|effective| effective.rule.name()).collect();
            let remedy = match nearest(name, names.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if names.is_empty() => format!("its rules have no names; write a position: {positions}"),
                None => format!("its names are `{}`", names.join("`, `")),
            };
            RuleMistake::new(Field::Name, format!("the policy has no rule with the name `{name}`; {remedy}"))
        }
        RuleId::Position(position) => {
            let message = format!("the policy has no rule at the position {position}; its positions are {positions}");
            RuleMistake::new(Field::Rule, message)
        }
    }
}

fn unknown_subject(label: Option<&str>, effective: &[EffectiveRule]) -> RuleMistake {
    let mut labels: Vec<_> = effective.iter().filter_map(|effective| effective.label.as_deref()).collect();
    labels.sort_unstable();
    labels.dedup();
    let message = match label {
        None => format!("the policy has no rules on the main subject; write one of `{}`", labels.join("`, `")),
        Some(label) => {
            let remedy = match nearest(label, labels.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if labels.is_empty() => "its rules are on the main subject".to_owned(),
                None => format!("its subjects are `{}`", labels.join("`, `")),
            };
            format!("the policy has no rules on the subject `{label}`; {remedy}")
        }
    };
    RuleMistake::new(Field::Subject, message)
}
