//! The checks of all rules of a policy.

use crate::costs::Costs;
use crate::counted_subject::CountedSubject;
use crate::error::{Field, RuleError, RuleMistake};
use crate::limits::MAX_RULES;
use crate::rule::Rule;
use crate::validate::alone::{check_alone, check_times};
use crate::validate::binding::{Placed, check_can_bind};
use crate::validate::distinct::{check_name, check_window};

/// Which checks the rules pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks {
    pub(crate) zero_counts: ZeroCounts,
    pub(crate) binding: BindingCheck,
}

/// Whether a rule may admit nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZeroCounts {
    Refused,
    Allowed,
}

/// Whether each rule must be able to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingCheck {
    Required(Costs),
    Optional,
}

impl Checks {
    /// Checks rules, each with the subject that it counts.
    pub(crate) fn run(self, rules: &[(CountedSubject<'_>, &Rule)]) -> Result<(), Vec<RuleError>> {
        let mut errors = Vec::new();
        errors.extend(check_number(rules.len()).map(RuleMistake::in_policy));
        let mut sound: Vec<Placed<'_>> = Vec::new();
        for (position, (subject, rule)) in rules.iter().enumerate() {
            let earlier = rules[..position].iter().map(|(_, rule)| *rule);
            let name = check_name(rule, earlier);
            let alone = self.check_alone(rule);
            if alone.is_empty() && (rule.count() > 0 || rule.is_varying()) {
                sound.push(Placed { position, subject, rule });
            }
            errors.extend(name.into_iter().chain(alone).map(|mistake| mistake.at(position)));
        }
        // Only rules without mistakes of their own are compared.
        for placed in &sound {
            errors.extend(self.check_beside(placed, &sound).map(|mistake| mistake.at(placed.position)));
        }
        errors.sort_by_key(RuleError::position);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn check_alone(self, rule: &Rule) -> Vec<RuleMistake> {
        let is_closed = rule.count() == 0 && !rule.is_varying();
        match self.zero_counts {
            ZeroCounts::Allowed if is_closed => check_times(rule).collect(),
            _ => check_alone(rule).collect(),
        }
    }

    /// Compares a rule with all rules, of which it is one.
    fn check_beside(self, placed: &Placed<'_>, all: &[Placed<'_>]) -> Option<RuleMistake> {
        let is_earlier = |other: &&Placed<'_>| other.position < placed.position && other.subject == placed.subject;
        let earlier = all.iter().filter(is_earlier).map(|other| other.rule);
        check_window(placed.rule, earlier).or_else(|| match self.binding {
            BindingCheck::Required(costs) => check_can_bind(placed, all, costs),
            BindingCheck::Optional => None,
        })
    }
}

fn check_number(rules: usize) -> Option<RuleMistake> {
    let message = match rules {
        0 => "a policy needs at least one rule, like `rule(count = 10, per = \"60s\")`".to_owned(),
        1..=MAX_RULES => return None,
        _ => format!("a policy has at most {MAX_RULES} rules, but this one has {rules}; split it up"),
    };
    Some(RuleMistake::new(Field::Rule, message))
}
