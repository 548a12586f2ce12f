//! The rules of a policy of the file.

use tallygate_rules::{Costs, CountedSubject, Rule, RuleError, validate_by_subject};

use super::lines::{At, Lines};
use super::rule_table::{self, FileRule};
use super::table::Table;
use crate::error::Place;
use crate::policy::PolicySettings;

/// What a list of rules looks like.
pub(super) const EXAMPLE: &str = r#"rules = ["10 per 60s"]"#;

/// The rules of a policy, and the place of their list.
pub(super) type RuleList = At<Vec<FileRule>>;

/// What every policy of the file may have.
pub(super) struct PolicyParts<'t> {
    pub(super) name: At<&'t str>,
    pub(super) rules: Option<RuleList>,
    pub(super) key: Option<At<&'t str>>,
    pub(super) settings: PolicySettings,
}

/// Takes the rules out of the table of a policy.
pub(super) fn take(policy: &mut Table<'_>, lines: &mut Lines<'_>) -> Option<RuleList> {
    let At { value: written, place } = policy.list("rules", EXAMPLE, lines)?;
    if written.is_empty() {
        lines.report(place, format!("`rules` needs at least one rule, like `{EXAMPLE}`"));
    }
    let rules = written.iter().filter_map(|rule| rule_table::read(rule, lines)).collect();
    Some(At { value: rules, place })
}

/// Reports every mistake in the rules. A rule of which a part could not be read is checked alone.
pub(super) fn check<'a>(
    list: &'a RuleList,
    subject: impl Fn(&'a FileRule) -> CountedSubject<'a>,
    costs: Costs,
    lines: &mut Lines<'_>,
) {
    let (complete, incomplete): (Vec<_>, Vec<_>) = list.value.iter().partition(|rule| rule.is_complete);
    let together = (!complete.is_empty()).then_some(complete);
    for rules in together.into_iter().chain(incomplete.into_iter().map(|rule| vec![rule])) {
        let counted: Vec<(_, Rule)> = rules.iter().map(|rule| (subject(rule), rule.rule.clone())).collect();
        for mistake in validate_by_subject(&counted, costs).err().into_iter().flatten() {
            lines.report(place_of(&mistake, &rules, list.place), mistake.to_string());
        }
    }
}

/// Returns the place of a mistake in rules; that of the list if it is in none of them.
fn place_of(mistake: &RuleError, rules: &[&FileRule], list: Place) -> Place {
    let rule = mistake.position().and_then(|position| rules.get(position));
    rule.map_or(list, |rule| rule.place_of(mistake.field()))
}
