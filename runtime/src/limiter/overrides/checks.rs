//! The checks that every override passes before it is stored.

use tallygate_rules::{EffectiveRule, Replacement, Rule, RuleError, RuleId, validate_override};

use super::target::{OverrideContent, OverrideTarget};
use crate::error::Error;
use crate::policy::{Policy, registry};

/// How to treat an override for a policy, a subject or a rule that this process does not know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::limiter) enum Unknown {
    Refuse,
    Allow,
}

/// Refuses an override that is mistaken, or that names what is unknown. `own` are the rules of the policy, if they may
/// differ from those that this process knows.
pub(in crate::limiter) fn check(
    target: &OverrideTarget,
    content: &OverrideContent,
    own: Option<&[EffectiveRule]>,
    unknown: Unknown,
) -> Result<(), Error> {
    if content.shadow.is_some() && !target.is_for_any_subject() {
        let remedy = "`shadow` and `enforced` hold for a whole policy; leave the label and the subject out";
        return Err(refuse(target, remedy));
    }
    match (&content.replacement, own) {
        (Some(replacement), Some(own)) => check_in(own, target, replacement, unknown),
        (Some(replacement), None) => check_known(target, replacement, unknown),
        (None, Some(_)) => Ok(()),
        (None, None) => check_name(target, unknown),
    }
}

/// Refuses the name of a policy that this process does not know, unless it knows no policy at all.
fn check_name(target: &OverrideTarget, unknown: Unknown) -> Result<(), Error> {
    if unknown == Unknown::Allow || registry::find(&target.policy).is_some() {
        return Ok(());
    }
    check_policy_name(&target.policy, &registry::all())
}

/// Refuses mistaken rules. If this process knows any policy, it also refuses unknown names.
fn check_known(target: &OverrideTarget, replacement: &Replacement, unknown: Unknown) -> Result<(), Error> {
    if let Some(policy) = registry::find(&target.policy) {
        return check_in(&policy.effective_rules(), target, replacement, unknown);
    }
    if let Replacement::Single(rules) = replacement {
        check_distinct(target, rules)?;
    }
    check_name(target, unknown)?;
    check_alone(target, replacement)
}

/// Checks an override for a policy with these rules.
fn check_in(
    rules: &[EffectiveRule],
    target: &OverrideTarget,
    replacement: &Replacement,
    unknown: Unknown,
) -> Result<(), Error> {
    if let Replacement::Single(rules) = replacement {
        check_distinct(target, rules)?;
    }
    if unknown == Unknown::Refuse || has_all(rules, target, replacement) {
        check_in_policy(rules, target, replacement)
    } else {
        check_alone(target, replacement)
    }
}

/// Returns the mistakes in rules, for any policy.
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

/// A process that knows some policies is expected to know all; an operator's tool may know none.
fn check_policy_name(name: &str, known: &[Policy]) -> Result<(), Error> {
    if known.is_empty() {
        return Ok(());
    }
    let hint =
        "the policy of a function is known from its first call on; `allow_unknown` stores the override all the same";
    Err(Error::new(registry::unknown(name, known, hint)))
}

/// Checks new rules beside those of the policy.
fn check_in_policy(rules: &[EffectiveRule], target: &OverrideTarget, new: &Replacement) -> Result<(), Error> {
    if let Replacement::Single(single) = new {
        single.iter().try_for_each(|(id, _)| check_subject(rules, target, id))?;
    }
    new.check(rules, target.label.as_deref()).map_err(|found| Error::policy(&target.policy, Vec::new(), &found))
}

/// Refuses a rule that counts another subject than that of the override. A rule that the policy does not have is
/// another mistake.
// The remedy is in words, as a builder, a command and a path have different places for the label.
fn check_subject(rules: &[EffectiveRule], target: &OverrideTarget, id: &RuleId) -> Result<(), Error> {
    match rules.iter().find(|rule| rule.has_id(id)) {
        Some(found) if !target.includes(found.label.as_deref()) => {
            let remedy = match &found.label {
                None => "counts the main subject; override it without a label".to_owned(),
                Some(label) => format!("counts the subject `{label}`; override it with that label"),
            };
            Err(refuse(target, &format!("{} {remedy}", in_words(id))))
        }
        _ => Ok(()),
    }
}

/// Whether the policy has the replaced rules, on the subject of the override, and the units of the new ones.
fn has_all(rules: &[EffectiveRule], target: &OverrideTarget, new: &Replacement) -> bool {
    let has = |id: &RuleId| rules.iter().any(|rule| rule.has_id(id) && target.includes(rule.label.as_deref()));
    match new {
        // A subject that only a ban counts has no rules.
        Replacement::All(_) => rules.iter().any(|rule| rule.label == target.label) && new.unknown_unit(rules).is_none(),
        Replacement::Single(single) => single.iter().all(|(id, _)| has(id)),
    }
}

pub(super) fn refuse(target: &OverrideTarget, mistake: &str) -> Error {
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
