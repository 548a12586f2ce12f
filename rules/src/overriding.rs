//! Overrides: rules that replace those of a policy at run time.

mod several_subjects;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use self::several_subjects::validate_replacements;
use crate::counted_subject::CountedSubject;
use crate::error::{Field, RuleError};
use crate::rule::Rule;
use crate::suggestion::{nearest, remedy};
use crate::unit::CALLS;
use crate::validate::Checks;

/// Identifies a rule of a policy. A rule has nothing else to identify it by, so this gets no further variants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleId {
    /// By its name.
    Name(String),
    /// By its position in the policy, counted from 0.
    Position(usize),
}

/// Rules that replace those of a policy on one subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// The rules replace all rules on the subject that count one of their units. Rules of other units stay.
    ///
    /// The new rules of a unit take the places of the old ones, and any further ones follow at the end. A new rule stands for an
    /// old rule on the subject with the [same window](Rule::has_same_window), if both are in shadow or neither is: it
    /// has the old rule's position, and its name unless it has its own.
    All(Vec<Rule>),
    /// Each rule replaces one rule, in this order. A new rule keeps the name of the old one unless it has its own.
    Single(Vec<(RuleId, Rule)>),
}

/// A rule that is in force in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectiveRule {
    /// The label of the subject that it counts, or `None` for the main subject.
    pub label: Option<String>,
    /// The rule.
    pub rule: Rule,
    /// The position of the policy's own rule that this rule is or stands for.
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

/// Finds every mistake in rules that override all rules of their units on one subject. The mistakes are those of
/// [`validate`](crate::validate()), with two differences:
///
/// * A count of 0 is allowed. While such a rule is in force, no call is admitted that costs any of its unit.
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
    let found = Checks::Override.run(&rules).err();
    RuleError::all_or_none(varying.into_iter().chain(found.into_iter().flatten()).collect())
}

impl EffectiveRule {
    /// Returns whether the id is the rule's name, or the position for which it stands.
    #[must_use]
    pub fn has_id(&self, id: &RuleId) -> bool {
        match id {
            RuleId::Name(name) => self.rule.name() == Some(name),
            RuleId::Position(position) => self.position == Some(*position),
        }
    }

    fn replace(&mut self, rule: &Rule) {
        self.rule = named_like(rule, &self.rule);
    }
}

impl Replacement {
    /// Returns the rules that the replacement puts in force, in place of those in force on the subjects of a policy. It
    /// checks nothing.
    ///
    /// Ignored are a single rule that the subject does not have, or that counts another unit there, and new rules in units
    /// that none of the rules counts: see [`unit_mistake`](Self::unit_mistake). Returns `None` if nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate_rules::{EffectiveRule, Replacement, parse_rules};
    ///
    /// let rules = parse_rules("1 per 1m, 10 per 1d as daily").unwrap();
    /// let own = |(position, rule)| EffectiveRule { label: None, rule, position: Some(position) };
    /// let policy: Vec<_> = rules.into_iter().enumerate().map(own).collect();
    ///
    /// let raise = |name: &str| Replacement::Single(vec![(name.into(), "50 per 1d".parse().unwrap())]);
    /// assert_eq!(raise("daily").check(&policy, None), Ok(()));
    /// let effective = raise("daily").apply(&policy, None).unwrap();
    /// assert_eq!(effective[1].rule.to_string(), "50 per 1d as daily");
    ///
    /// let errors = raise("dayly").check(&policy, None).unwrap_err();
    /// assert_eq!(errors[0].to_string(), "the policy has no rule with the name `dayly`; did you mean `daily`?");
    /// ```
    #[must_use]
    pub fn apply(&self, rules: &[EffectiveRule], label: Option<&str>) -> Option<Vec<EffectiveRule>> {
        match self {
            Self::All(new) => {
                let is_known = |rule: &&Rule| rule.unit().is_none_or(|unit| is_counted(unit, rules));
                let known: Vec<_> = new.iter().filter(is_known).cloned().collect();
                (!known.is_empty()).then(|| replace_all(rules, label, &known).0)
            }
            Self::Single(new) => {
                let mut rules = rules.to_vec();
                let mut is_changed = false;
                for (id, rule) in new {
                    let old = rules.iter_mut().find(|old| old.label.as_deref() == label && old.has_id(id));
                    let old = old.filter(|old| check_unit_kept(&old.rule, rule).is_none());
                    is_changed |= old.map(|old| old.replace(rule)).is_some();
                }
                is_changed.then_some(rules)
            }
        }
    }

    /// Returns a unit of the new rules that none of a policy's rules counts, so that its calls have no cost in it.
    #[must_use]
    pub fn unknown_unit(&self, rules: &[EffectiveRule]) -> Option<&str> {
        let Self::All(new) = self else { return None };
        new.iter().filter_map(Rule::unit).find(|unit| !is_counted(unit, rules))
    }

    /// Returns what is wrong with the units of the new rules: none of a policy's rules counts one, or a single rule counts
    /// another than the rule that it replaces. [`apply`](Self::apply) ignores such a rule.
    #[must_use]
    pub fn unit_mistake(&self, rules: &[EffectiveRule]) -> Option<RuleError> {
        match self {
            Self::All(_) => self.unknown_unit(rules).map(|unit| unknown_unit(unit, rules)),
            Self::Single(new) => new.iter().find_map(|(id, rule)| {
                let place = rules.iter().position(|old| old.has_id(id))?;
                Some(check_unit_kept(&rules[place].rule, rule)?.in_rule(place))
            }),
        }
    }

    /// Checks the new rules beside those in force on the subjects of a policy. Single rules may be on any subject.
    ///
    /// The checks are those of [`validate_override`], except that another rule may be unable to bind beside a single
    /// new one: raising one limit must not require removing another.
    ///
    /// # Errors
    ///
    /// Returns an error for a rule or a subject that the policy does not have, or all mistakes in the new rules. Of
    /// single rules, it returns the mistakes of the first mistaken one. Positions are those in the list of rules that
    /// would be in force.
    pub fn check(&self, rules: &[EffectiveRule], label: Option<&str>) -> Result<(), Vec<RuleError>> {
        match self {
            Self::All(_) if !rules.iter().any(|rule| rule.label.as_deref() == label) => {
                Err(vec![unknown_subject(label, rules)])
            }
            Self::All(new) if new.is_empty() => {
                let message =
                    "an override needs at least one rule; to admit nothing, write a count of 0, like `0 per 1h`";
                Err(vec![RuleError::new(Field::Rule, message)])
            }
            Self::All(new) => {
                if let Some(mistake) = self.unit_mistake(rules) {
                    return Err(vec![mistake]);
                }
                let (rules, replacing) = replace_all(rules, label, new);
                let changed: Vec<_> = replacing.into_iter().map(|(at, _)| at).collect();
                check(&rules, &changed, Checks::Override)
            }
            Self::Single(new) => {
                let mut rules = rules.to_vec();
                new.iter().try_for_each(|(id, rule)| {
                    let place = rules.iter().position(|old| old.has_id(id));
                    let place = place.ok_or_else(|| vec![unknown_rule(id, &rules)])?;
                    if let Some(mistake) = check_unit_kept(&rules[place].rule, rule) {
                        return Err(vec![mistake.in_rule(place)]);
                    }
                    rules[place].replace(rule);
                    check(&rules, &[place], Checks::Effective)
                })
            }
        }
    }
}

fn is_counted(unit: &str, rules: &[EffectiveRule]) -> bool {
    rules.iter().any(|own| own.rule.unit() == Some(unit))
}

fn is_alike(old: &Rule, new: &Rule) -> bool {
    old.has_same_window(new) && old.is_shadow() == new.is_shadow()
}

/// Replaces all rules of some units on a subject. Returns all rules, and the positions of the new ones among them, each
/// with its position in the list of new rules.
fn replace_all(
    rules: &[EffectiveRule],
    label: Option<&str>,
    new: &[Rule],
) -> (Vec<EffectiveRule>, Vec<(usize, usize)>) {
    let is_on_subject = |rule: &&EffectiveRule| rule.label.as_deref() == label;
    let in_force = |rule: &Rule| {
        let old = rules.iter().filter(is_on_subject).find(|old| is_alike(&old.rule, rule));
        EffectiveRule {
            label: label.map(str::to_owned),
            rule: old.map_or_else(|| rule.clone(), |old| named_like(rule, &old.rule)),
            position: old.and_then(|old| old.position),
        }
    };
    let mut further: Vec<_> = new.iter().enumerate().collect();
    let mut changed = Vec::new();
    let mut replaced = Vec::new();
    for old in rules {
        let is_of_unit = |rule: &Rule| rule.unit() == old.rule.unit();
        if !is_on_subject(&old) || !new.iter().any(is_of_unit) {
            replaced.push(old.clone());
        } else if let Some(next) = further.iter().position(|(_, rule)| is_of_unit(rule)) {
            let (at, rule) = further.remove(next);
            changed.push((replaced.len(), at));
            replaced.push(in_force(rule));
        }
    }
    for (at, rule) in further {
        changed.push((replaced.len(), at));
        replaced.push(in_force(rule));
    }
    (replaced, changed)
}

/// Refuses a single rule that counts another unit than the old one: who forgets the unit would close the policy.
fn check_unit_kept(old: &Rule, new: &Rule) -> Option<RuleError> {
    let (old, counts) = (old.counted(), new.counted());
    (old != counts).then(|| {
        let message = format!("the rule counts `{old}` and the new one `{counts}`; write `{old}` behind its count");
        RuleError::new(Field::Unit, message)
    })
}

/// Checks the changed rules among themselves, and then all rules.
fn check(effective: &[EffectiveRule], changed: &[usize], checks: Checks) -> Result<(), Vec<RuleError>> {
    let mut errors: Vec<_> =
        changed.iter().filter_map(|&at| Some(check_count(&effective[at].rule)?.in_rule(at))).collect();
    let subjects = effective.iter().map(|effective| CountedSubject::labelled(effective.label.as_deref()));
    let rules: Vec<_> = subjects.zip(effective.iter().map(|effective| &effective.rule)).collect();
    errors.extend(Checks::Effective.run(&rules).err().into_iter().flatten());
    if errors.is_empty() {
        let rules: Vec<_> = changed.iter().map(|&at| rules[at].clone()).collect();
        let found = checks.run(&rules).err().into_iter().flatten();
        errors.extend(found.map(|error| error.moved(|position| changed.get(position).copied())));
    }
    RuleError::all_or_none(errors)
}

fn check_count(rule: &Rule) -> Option<RuleError> {
    rule.is_varying()
        .then(|| RuleError::new(Field::Count, "the count of an override is a number; write it in place of `n`"))
}

fn named_like(rule: &Rule, old: &Rule) -> Rule {
    match (rule.name(), old.name()) {
        (None, Some(name)) => rule.clone().named(name.to_owned()),
        _ => rule.clone(),
    }
}

fn unknown_rule(id: &RuleId, rules: &[EffectiveRule]) -> RuleError {
    let positions: Vec<_> = rules.iter().filter_map(|rule| Some(rule.position?.to_string())).collect();
    let positions = positions.join(", ");
    match id {
        RuleId::Name(name) => {
            let names: Vec<_> = rules.iter().filter_map(|rule| rule.rule.name()).collect();
            let remedy = match &names[..] {
                [] => format!("its rules have no names; write a position: {positions}"),
                names => remedy(nearest(name, names.iter().copied()), "its names are", names),
            };
            RuleError::new(Field::Name, format!("the policy has no rule with the name `{name}`; {remedy}"))
        }
        RuleId::Position(position) => {
            let message = format!("the policy has no rule at the position {position}; its positions are {positions}");
            RuleError::new(Field::Rule, message)
        }
    }
}

fn unknown_unit(unit: &str, rules: &[EffectiveRule]) -> RuleError {
    let known: BTreeSet<_> = rules.iter().filter_map(|own| own.rule.unit()).chain([CALLS]).collect();
    let known: Vec<_> = known.into_iter().collect();
    let remedy = remedy(nearest(unit, known.iter().copied()), "its units are", &known);
    RuleError::new(Field::Unit, format!("the policy counts no `{unit}`; {remedy}"))
}

fn unknown_subject(label: Option<&str>, rules: &[EffectiveRule]) -> RuleError {
    let labels: BTreeSet<_> = rules.iter().filter_map(|rule| rule.label.as_deref()).collect();
    let labels: Vec<_> = labels.into_iter().collect();
    let message = match label {
        None => format!("the policy has no rules on the main subject; write one of `{}`", labels.join("`, `")),
        Some(label) => {
            let remedy = match &labels[..] {
                [] => "its rules are on the main subject".to_owned(),
                labels => remedy(nearest(label, labels.iter().copied()), "its subjects are", labels),
            };
            format!("the policy has no rules on the subject `{label}`; {remedy}")
        }
    };
    RuleError::new(Field::Subject, message)
}
