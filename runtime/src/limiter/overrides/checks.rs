//! The checks that every override passes before it is stored.

use tallygate_rules::{Rule, RuleChange, RuleError, RuleId, nearest, override_rules, validate_override};

use super::target::OverrideTarget;
use crate::error::Error;
use crate::policy::{Policy, Replacement, registry};

/// What becomes of an override for a policy, a subject or a rule that this process does not know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unknown {
    Refuse,
    Allow,
}

/// Refuses rules that are mistaken, and names that this process does not know although it knows others.
pub(super) fn check(target: &OverrideTarget, replacement: &Replacement, unknown: Unknown) -> Result<(), Error> {
    if let Replacement::Single(rules) = replacement {
        check_distinct(target, rules)?;
    }
    match registry::find(&target.policy) {
        Some(policy) if unknown == Unknown::Refuse || has_all(&policy, target, replacement) => {
            check_in_policy(&policy, target, replacement)
        }
        None if unknown == Unknown::Refuse => {
            check_policy_name(&target.policy, &registry::all())?;
            check_alone(target, replacement)
        }
        _ => check_alone(target, replacement),
    }
}

/// The mistakes in rules, whatever policy they are for.
pub(super) fn mistakes(replacement: &Replacement) -> Vec<String> {
    match replacement {
        Replacement::All(rules) => {
            let at = |mistake: RuleError| match mistake.position() {
                Some(position) => format!("rule {position}: {mistake}"),
                None => mistake.to_string(),
            };
            validate_override(rules).err().into_iter().flatten().map(at).collect()
        }
        Replacement::Single(rules) => {
            let of_rule = |(id, rule): &(RuleId, Rule)| {
                let found = validate_override(std::slice::from_ref(rule)).err().into_iter().flatten();
                found.map(|mistake| format!("{}: {mistake}", in_words(id))).collect::<Vec<_>>()
            };
            rules.iter().flat_map(of_rule).collect()
        }
    }
}

fn check_alone(target: &OverrideTarget, replacement: &Replacement) -> Result<(), Error> {
    let found = mistakes(replacement);
    if found.is_empty() { Ok(()) } else { Err(refuse(target, &found.join("; "))) }
}

fn check_distinct(target: &OverrideTarget, rules: &[(RuleId, Rule)]) -> Result<(), Error> {
    let is_repeated =
        |(index, (id, _)): &(usize, &(RuleId, _))| rules[..*index].iter().any(|(earlier, _)| earlier == id);
    match rules.iter().enumerate().find(is_repeated) {
        Some((_, (id, _))) => Err(refuse(target, &format!("{} is overridden twice; keep one of them", in_words(id)))),
        None => Ok(()),
    }
}

/// An operator's tool may know no policy at all. A process that knows some is expected to know all.
fn check_policy_name(name: &str, known: &[Policy]) -> Result<(), Error> {
    if known.is_empty() {
        return Ok(());
    }
    let meant = nearest(name, known.iter().map(Policy::name));
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    Err(Error::new(format!(
        "this process knows no policy `{name}`{meant} (the policy of a function is known from its first call on; \
         `allow_unknown` stores the override all the same)"
    )))
}

/// Checks rules beside the policy's other rules.
fn check_in_policy(policy: &Policy, target: &OverrideTarget, replacement: &Replacement) -> Result<(), Error> {
    let changes = match replacement {
        Replacement::All(rules) => vec![RuleChange::Subject { label: target.label.clone(), rules: rules.clone() }],
        Replacement::Single(rules) => {
            rules.iter().try_for_each(|(id, _)| check_subject(policy, target, id))?;
            rules.iter().map(|(id, rule)| RuleChange::One { id: id.clone(), rule: rule.clone() }).collect()
        }
    };
    let checked = override_rules(&policy.rules_with_labels(), &changes);
    checked.map(drop).map_err(|found| Error::rules(&target.policy, &found))
}

/// Refuses a rule that counts another subject than the override is for.
fn check_subject(policy: &Policy, target: &OverrideTarget, id: &RuleId) -> Result<(), Error> {
    if has(policy, target, id) {
        return Ok(());
    }
    let labels = policy.groups().iter().map(|group| group.label.as_deref());
    let elsewhere = labels.clone().find(|label| policy.position_of(*label, id).is_some());
    let rule = in_words(id);
    match elsewhere {
        Some(None) => Err(refuse(target, &format!("{rule} counts the main subject; leave `on` out"))),
        Some(Some(label)) => {
            Err(refuse(target, &format!("{rule} counts the subject `{label}`; write `on(\"{label}\")`")))
        }
        // A rule that the policy does not have is a mistake of its own.
        None => Ok(()),
    }
}

fn has_all(policy: &Policy, target: &OverrideTarget, replacement: &Replacement) -> bool {
    match replacement {
        // A subject that a ban alone counts has no rules.
        Replacement::All(_) => policy.rules_with_labels().iter().any(|(label, _)| *label == target.label),
        Replacement::Single(rules) => rules.iter().all(|(id, _)| has(policy, target, id)),
    }
}

/// Whether the policy has that rule, on the subject that the override is for.
fn has(policy: &Policy, target: &OverrideTarget, id: &RuleId) -> bool {
    let labels = policy.groups().iter().map(|group| group.label.as_deref());
    let mut labels = labels.filter(|label| target.is_for_any_subject() || *label == target.label.as_deref());
    labels.any(|label| policy.position_of(label, id).is_some())
}

fn refuse(target: &OverrideTarget, mistake: &str) -> Error {
    Error::new(format!("policy `{}`: {mistake}", target.policy))
}

fn in_words(id: &RuleId) -> String {
    match id {
        RuleId::Name(name) => format!("rule `{name}`"),
        RuleId::Position(position) => format!("rule {position}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_process_that_knows_no_policy_refuses_no_name() {
        let policy =
            Policy::builder("sms.send").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
        assert!(check_policy_name("sms.snd", &[]).is_ok());
        let refused = check_policy_name("sms.snd", std::slice::from_ref(&policy)).unwrap_err().to_string();
        assert!(refused.starts_with("this process knows no policy `sms.snd`; did you mean `sms.send`?"), "{refused}");
        let refused = check_policy_name("login", &[policy]).unwrap_err().to_string();
        assert!(refused.starts_with("this process knows no policy `login` ("), "{refused}");
    }
}
