//! The checks that tell the rules of a policy apart.

use crate::duration::format_duration;
use crate::error::{Field, RuleMistake};
use crate::rule::Rule;
use crate::template::is_blank;

/// Checks that no earlier rule of the policy has the same name.
pub(super) fn check_name<'a>(rule: &Rule, mut earlier: impl Iterator<Item = &'a Rule>) -> Option<RuleMistake> {
    let name = rule.name()?;
    let message = if is_blank(name) {
        "`name` of a rule must not be empty; leave it out, or write one, like `name = \"daily\"`".to_owned()
    } else if earlier.any(|other| other.name() == Some(name)) {
        format!("two rules have the name `{name}`; rename one, so that a rejection identifies its rule")
    } else {
        return None;
    };
    Some(RuleMistake::new(Field::Name, message))
}

/// Checks that no earlier rule of the subject counts the same window by the same algorithm.
pub(super) fn check_window<'a>(rule: &Rule, mut earlier: impl Iterator<Item = &'a Rule>) -> Option<RuleMistake> {
    earlier.any(|other| other.has_same_window(rule)).then(|| {
        let window = match rule.per() {
            Some(per) => format!("the same window of {}", format_duration(per)),
            None if rule.lease().is_some() => "the concurrent calls of one subject".to_owned(),
            None => "the windows of the same schedule".to_owned(),
        };
        RuleMistake::new(Field::Per, format!("two rules count {window}; keep the stricter one"))
    })
}
