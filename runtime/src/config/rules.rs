//! The rules of a policy of the file, each a text or a table of arguments.

use tallygate_rules::{
    ArgumentSource, Costs, CountedSubject, EMPTY_KEY, Field, MAX_LEASE, MAX_RULES, NO_WINDOW, RejectionField, Role,
    Rule, RuleError, TemplateUse, is_blank, scan, validate_by_subject,
};
use toml::de::DeValue;

use super::lines::{At, Lines};
use super::table::Table;
use crate::context::ContextMessage;
use crate::error::Place;
use crate::policy::{self, PolicySettings};

/// An example of a list of rules, for errors.
pub(super) const EXAMPLE: &str = r#"rules = ["10 per 60s"]"#;

/// The rules of a policy, and the place of their list.
pub(super) type RuleList = At<Vec<FileRule>>;

/// The entries that every policy of the file may have.
pub(super) struct PolicyParts<'t> {
    pub(super) name: At<&'t str>,
    pub(super) rules: Option<RuleList>,
    pub(super) key: Option<At<&'t str>>,
    pub(super) settings: PolicySettings,
}

/// A rule, and the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct FileRule {
    pub(super) rule: Rule,
    /// The key of the subject that it counts, if it is not that of the policy.
    pub(super) key: Option<At<String>>,
    pub(super) message: Option<At<ContextMessage>>,
    pub(super) place: Place,
    /// The places of its arguments.
    pub(super) places: Vec<(&'static str, Place)>,
    /// Whether all of it could be read. A valid value stands in place of each part that could not.
    pub(super) is_complete: bool,
}

impl FileRule {
    /// Returns the place of a part, or of the whole rule.
    pub(super) fn place_of(&self, field: Field) -> Place {
        let argument = self.places.iter().find(|(name, _)| field.arguments().contains(name));
        argument.map_or(self.place, |(_, place)| *place)
    }

    /// Returns the label of the subject that it counts in a policy with that key: `None` for the main subject, even where
    /// its key is repeated.
    pub(super) fn label(&self, key: Option<&str>) -> Option<&str> {
        self.key.as_ref().map(|own| own.value.as_str()).filter(|own| Some(*own) != key)
    }
}

/// Takes the rules out of the table of a policy.
pub(super) fn take(policy: &mut Table<'_>, lines: &mut Lines<'_>) -> Option<RuleList> {
    let At { value: written, place } = policy.list("rules", EXAMPLE, lines)?;
    if written.is_empty() {
        lines.report(place, format!("`rules` needs at least one rule, like `{EXAMPLE}`"));
    }
    if written.len() > MAX_RULES {
        let message =
            format!("a policy has at most {MAX_RULES} rules, but this one has {}; split it up", written.len());
        lines.report(place, message);
        return None;
    }
    let rules = written.iter().filter_map(|rule| read(rule, lines)).collect();
    Some(At { value: rules, place })
}

/// Reports every mistake in the rules. A rule of which a part could not be read is checked alone.
pub(super) fn check_rules<'a>(
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

/// Returns the place of a mistake in rules, or that of the list if it is in none of them.
fn place_of(mistake: &RuleError, rules: &[&FileRule], list: Place) -> Place {
    let rule = mistake.position().and_then(|position| rules.get(position));
    rule.map_or(list, |rule| rule.place_of(mistake.field()))
}

/// Whether all rules could be read. Where one could not, nothing is said of all of them.
pub(super) fn are_known(list: &RuleList) -> bool {
    list.value.iter().all(|rule| rule.is_complete)
}

/// Returns the rules if all of them could be read whole. Otherwise it is not known what they admit.
pub(super) fn known_rules(list: Option<&RuleList>) -> impl Iterator<Item = &Rule> {
    let list = list.filter(|list| are_known(list));
    list.into_iter().flat_map(|list| list.value.iter().map(|rule| &rule.rule))
}

/// Reads a rule; `None` if it is neither a text nor a table.
fn read(written: &At<&DeValue<'_>>, lines: &mut Lines<'_>) -> Option<FileRule> {
    match written.value {
        DeValue::String(text) => Some(read_text(text, written.place, lines)),
        DeValue::Table(table) => {
            let table = Table::new(table, written.place, lines);
            Some(if table.has("lease") { read_concurrency(table, lines) } else { read_limit(table, lines) })
        }
        _ => {
            let message =
                "a rule must be a text, like `\"10 per 60s\"`, or a table, like `{ count = 10, per = \"60s\" }`";
            lines.report(written.place, message);
            None
        }
    }
}

fn read_text(text: &str, place: Place, lines: &mut Lines<'_>) -> FileRule {
    let read = text.parse::<Rule>().map_err(|why| why.to_string()).and_then(|rule| {
        let varies = "the count of a rule in a file is a number; write it in place of `n`".to_owned();
        if rule.is_varying() { Err(varies) } else { Ok(rule) }
    });
    let rule = lines.ok_or_report(place, read);
    let is_complete = rule.is_some();
    // A varying count is compared with no other, so this rule causes no further mistakes.
    let rule = rule.unwrap_or_else(|| Rule::sliding_window(0, std::time::Duration::from_secs(1)).varying());
    FileRule { rule, key: None, message: None, place, places: Vec::new(), is_complete }
}

fn read_concurrency(mut table: Table<'_>, lines: &mut Lines<'_>) -> FileRule {
    let before = lines.mistakes();
    table.require("limit", "limit = 10");
    let remedy = "is an argument of the attribute; remove it: requests that a file limits run until their body is over";
    table.refuse("until", remedy, lines);
    table.refuse("unit", "is for a rule with a `count`: a limit on concurrent calls counts calls; remove it", lines);
    let limit = table.number("limit", "limit = 10", lines);
    let lease = table.duration("lease", r#"lease = "30s""#, lines);
    let rule = Rule::concurrency(0, lease.map_or(MAX_LEASE, |lease| lease.value));
    finish(table, rule, limit, before, lines)
}

fn read_limit(mut table: Table<'_>, lines: &mut Lines<'_>) -> FileRule {
    let before = lines.mistakes();
    table.require("count", "count = 10");
    if !table.has("cron") {
        table.require("per", r#"per = "60s""#);
    }
    let count = table.number("count", "count = 10", lines);
    let is_shadow = table.flag("shadow", lines).is_some_and(|shadow| shadow.value);
    let rule = tallygate_rules::read_limit(&mut TableSource { table: &mut table, lines });
    let rule = if is_shadow { rule.shadow() } else { rule };
    finish(table, rule, count, before, lines)
}

/// A table whose mistakes are reported.
struct TableSource<'s, 't, 'l> {
    table: &'s mut Table<'t>,
    lines: &'s mut Lines<'l>,
}

impl ArgumentSource for TableSource<'_, '_, '_> {
    fn text(&mut self, name: &'static str, example: &str) -> Option<String> {
        self.table.text(name, example, self.lines).map(|text| text.value.to_owned())
    }

    fn number(&mut self, name: &'static str, example: &str) -> Option<u64> {
        self.table.number(name, example, self.lines).map(|number| number.value)
    }

    fn report(&mut self, argument: &'static str, message: String) {
        self.lines.report(self.table.place_of(argument), message);
    }
}

/// Reads the entries that every table of a rule may have, and completes the rule with its count, name and key.
fn finish(
    mut table: Table<'_>,
    rule: Rule,
    count: Option<At<u64>>,
    mistakes_before: usize,
    lines: &mut Lines<'_>,
) -> FileRule {
    let place = table.place;
    let key = table.key(lines);
    let name = table.text("name", r#"name = "daily""#, lines);
    let message = table.message(TemplateUse::Message, lines);
    let is_without_window = rule.role() == Role::Concurrency;
    if let Some(shown) = message.as_ref().filter(|shown| is_without_window && shown.value.shows(RejectionField::Per)) {
        lines.report(shown.place, NO_WINDOW);
    }
    let key = key.filter(|key| check_key(key, lines)).map(|key| key.to_owned());
    if let Some(name) = &name {
        check_name(name, lines);
    }
    let places = table.finish(lines);
    let rule = match name {
        Some(name) => rule.named(name.value.to_owned()),
        None => rule,
    };
    let rule = match count {
        Some(count) => rule.with_count(count.value),
        None => rule.varying(),
    };
    FileRule { rule, key, message, place, places, is_complete: lines.mistakes() == mistakes_before }
}

/// Reports a name that was meant to show a value.
pub(super) fn check_name(name: &At<&str>, lines: &mut Lines<'_>) {
    lines.ok_or_report(name.place, policy::check_name(name.value));
}

/// Reports a key that is blank, whose braces do not match, or that has fixed text in place of a value. What its placeholders
/// mean depends on the policy.
pub(super) fn check_key(key: &At<&str>, lines: &mut Lines<'_>) -> bool {
    let read = match key.value {
        text if is_blank(text) => Err(EMPTY_KEY.to_owned()),
        text => scan(text).and_then(|_| TemplateUse::Key.check_fixed_text(text, |_| false)),
    };
    lines.ok_or_report(key.place, read).is_some()
}
