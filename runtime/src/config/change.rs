//! The changes that a file makes to a policy of the program.

use std::collections::BTreeSet;

use tallygate_rules::{
    Field, RELEASED_LABEL, Replacement, Role, Rule, RuleError, nearest, remedy, validate_replacements,
};

use super::lines::At;
use super::plans::{Plans, too_great};
use super::rules::FileRule;
use crate::error::{Mistake, Place};
use crate::policy::{Policy, PolicySettings};

/// The changes that a file makes to the policies of one name.
#[derive(Debug)]
pub(crate) struct PolicyChange {
    /// The name of the policies, and its place.
    pub(crate) name: String,
    pub(crate) place: Place,
    /// The key that the policy is expected to have.
    pub(super) key: Option<At<String>>,
    pub(super) rules: Vec<FileRule>,
    pub(super) settings: PolicySettings,
    pub(crate) plans: Plans,
}

impl PolicyChange {
    /// Returns the policy as the file changes it.
    ///
    /// # Errors
    ///
    /// All mistakes that show beside the policy: another key, a subject that it does not have, a name that another of its
    /// rules has.
    pub(crate) fn apply(&self, policy: &Policy) -> Result<Policy, Vec<Mistake>> {
        let mut mistakes: Vec<_> = self.check_key(policy).into_iter().collect();
        let rules: Vec<_> = self.rules.iter().map(|rule| (label_of(rule, policy), rule.rule.clone())).collect();
        let found = validate_replacements(&rules, &policy.effective_rules()).err().into_iter().flatten();
        mistakes.extend(found.map(|mistake| self.mistake_in(&mistake)));
        let mut changed = policy.clone();
        for (label, rules) in self.rules_by_label(policy) {
            changed = changed.with_replacement(label, &Replacement::All(rules)).unwrap_or(changed);
        }
        mistakes.extend(self.check_plans(policy, &changed));
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(if self.settings == PolicySettings::NONE { changed } else { changed.with_settings(self.settings) })
    }

    /// Whether it puts the policies or some of their rules in shadow, or takes them out.
    pub(crate) fn sets_shadow(&self) -> bool {
        self.settings.shadow.is_some() || self.rules.iter().any(|rule| rule.rule.is_shadow())
    }

    /// Returns the units that its rules count beside calls.
    pub(super) fn units(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|rule| rule.rule.unit())
    }

    /// Returns the rules as a policy of their own, if there are any. The label of a subject is its key.
    pub(crate) fn policy(&self) -> Option<Policy> {
        let key = self.key.as_ref().map(|key| key.value.as_str());
        let labelled = |rule: &FileRule| (rule.label(key).map(str::to_owned), rule.rule.clone());
        let rules: Vec<_> = self.rules.iter().map(labelled).collect();
        (!rules.is_empty()).then(|| Policy::of_checked(self.name.clone(), rules, self.settings))
    }

    fn check_key(&self, policy: &Policy) -> Option<Mistake> {
        let At { value, place } = self.key.as_ref()?;
        let message = match key_of(policy) {
            Some(key) if key == value => return None,
            Some(key) => {
                format!("the key of this policy is a part of the program: write `key = {key:?}`, or remove it")
            }
            None => "the program says no `key` of this policy; remove it".to_owned(),
        };
        Some(Mistake::new(*place, message))
    }

    /// Reports plans, and counts of plans in a unit, that no call can ask for.
    fn check_plans(&self, policy: &Policy, changed: &Policy) -> Vec<Mistake> {
        let Some(place) = self.plans.place else { return Vec::new() };
        let varies = |policy: &Policy| policy.rules().iter().any(Rule::is_varying);
        match (varies(policy), varies(changed)) {
            (true, false) => {
                let message = "the `rules` replace those whose `count` is an expression, so these `plans` change nothing; \
                               remove one of the two";
                vec![Mistake::new(place, message)]
            }
            (false, _) if policy.is_of_function() => {
                let message = "no `count` of this function is an expression, so nothing asks for these `plans`; remove them, \
                               or write the count in `rules`";
                vec![Mistake::new(place, message)]
            }
            _ => {
                // A program may set the count of each rule of a policy that it has built by hand.
                let may_ask =
                    |rule: &&Rule| rule.role() == Role::Limit && (rule.is_varying() || !policy.is_of_function());
                let asking: Vec<_> = changed.rules().iter().filter(may_ask).collect();
                let mut mistakes: Vec<_> =
                    self.plans.units.iter().filter_map(|unit| check_unit_of_plan(unit, changed)).collect();
                for (plan, At { value: counts, place }) in self.plans.own() {
                    mistakes.extend(too_great(plan, counts, &asking).map(|mistake| Mistake::new(*place, mistake)));
                }
                mistakes
            }
        }
    }

    /// Returns the rules by the label of their subject, in the order of its first rule.
    fn rules_by_label(&self, policy: &Policy) -> Vec<(Option<&str>, Vec<Rule>)> {
        let mut groups: Vec<(Option<&str>, Vec<Rule>)> = Vec::new();
        for rule in &self.rules {
            let label = label_of(rule, policy);
            match groups.iter_mut().find(|(known, _)| *known == label) {
                Some((_, rules)) => rules.push(rule.rule.clone()),
                None => groups.push((label, vec![rule.rule.clone()])),
            }
        }
        groups
    }

    /// Places a mistake in the rules. One that is in none of them is at the name of the policy.
    fn mistake_in(&self, mistake: &RuleError) -> Mistake {
        let rule = mistake.position().and_then(|position| self.rules.get(position));
        // The key of a rule names its subject, so a mistake in the subject is at the key.
        let place = rule.map_or(self.place, |rule| match &rule.key {
            Some(key) if mistake.field() == Field::Subject => key.place,
            _ => rule.place_of(mistake.field()),
        });
        Mistake::new(place, mistake.to_string())
    }
}

/// Reports a count of a plan in a unit that no rule counts, or only rules of a function with fixed counts.
fn check_unit_of_plan(unit: &At<String>, policy: &Policy) -> Option<Mistake> {
    let At { value: unit, place } = unit;
    let counting = || policy.rules().iter().filter(|rule| rule.role() == Role::Limit);
    let mut of_unit = counting().filter(|rule| rule.counted() == unit).peekable();
    let message = if of_unit.peek().is_none() {
        let known: BTreeSet<_> = counting().map(Rule::counted).collect();
        let known: Vec<_> = known.into_iter().collect();
        let remedy = remedy(nearest(unit, known.iter().copied()), "the rules count", &known);
        format!("no rule of this policy counts `{unit}`, so nothing asks for this count; {remedy}")
    } else if policy.is_of_function() && !of_unit.any(Rule::is_varying) {
        format!(
            "no `count` in `{unit}` of this function is an expression, so nothing asks for this count; remove it, or write it in \
             `rules`"
        )
    } else {
        return None;
    };
    Some(Mistake::new(*place, message))
}

/// Returns the key of the policy, if the program gives one.
fn key_of(policy: &Policy) -> Option<&str> {
    policy.key().filter(|key| !key.is_empty())
}

/// Returns the label of the subject that a rule counts in that policy. Released duplicates have their own tally.
fn label_of<'a>(rule: &'a FileRule, policy: &Policy) -> Option<&'a str> {
    let is_released = || policy.subject_labels().flatten().any(|label| **label == *RELEASED_LABEL);
    let is_duplicate = rule.rule.role() == Role::Duplicate;
    rule.label(key_of(policy)).or_else(|| (is_duplicate && is_released()).then_some(RELEASED_LABEL))
}
