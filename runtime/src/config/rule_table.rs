//! A rule of the file: a text, or a table of arguments.

use tallygate_rules::{
    ArgumentError, EMPTY_KEY, Field, MAX_LEASE, NAME_WITH_BRACES, Rule, RuleArguments, TemplateUse, is_blank, scan,
};
use toml::de::DeValue;

use super::lines::{At, Lines};
use super::table::Table;
use crate::error::Place;

/// A rule, and the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct FileRule {
    pub(super) rule: Rule,
    /// The key of the subject that it counts, if it is not that of the policy.
    pub(super) key: Option<At<String>>,
    pub(super) place: Place,
    pub(super) places: Vec<(Field, Place)>,
    /// Whether all of it could be read. Valid values take the places of the others.
    pub(super) is_complete: bool,
}

impl FileRule {
    /// Returns the place of a part, or of the whole rule.
    pub(super) fn place_of(&self, field: Field) -> Place {
        self.places.iter().find(|(written, _)| *written == field).map_or(self.place, |(_, place)| *place)
    }

    /// Returns the label of the subject that it counts in a policy with that key: `None` for the main subject, even where
    /// its key is repeated.
    pub(super) fn label(&self, key: Option<&str>) -> Option<&str> {
        self.key.as_ref().map(|own| own.value.as_str()).filter(|own| Some(*own) != key)
    }
}

/// Reads a rule; `None` if it is neither a text nor a table.
pub(super) fn read(written: &At<&DeValue<'_>>, lines: &mut Lines<'_>) -> Option<FileRule> {
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
    // A count that varies is compared with no other.
    let rule = rule.unwrap_or_else(|| Rule::sliding_window(0, std::time::Duration::from_secs(1)).varying());
    FileRule { rule, key: None, place, places: Vec::new(), is_complete }
}

fn read_concurrency(mut table: Table<'_>, lines: &mut Lines<'_>) -> FileRule {
    let before = lines.mistakes();
    table.require("limit", "limit = 10");
    let limit = table.number("limit", "limit = 10", lines);
    let lease = table.duration("lease", r#"lease = "30s""#, lines);
    let rule = Rule::concurrency(0, lease.as_ref().map_or(MAX_LEASE, |lease| lease.value));
    let lease = lease.map(|lease| (Field::Lease, lease.place));
    finish(table, rule, limit, lease.into_iter().collect(), before, lines)
}

fn read_limit(mut table: Table<'_>, lines: &mut Lines<'_>) -> FileRule {
    let before = lines.mistakes();
    let place = table.place();
    table.require("count", "count = 10");
    if !table.has("cron") {
        table.require("per", r#"per = "60s""#);
    }
    let count = table.number("count", "count = 10", lines);
    let per = table.text("per", r#"per = "60s""#, lines);
    let algorithm = table.text("algorithm", r#"algorithm = "token_bucket""#, lines);
    let capacity = table.number("capacity", "capacity = 100", lines);
    let initial = table.number("initial", "initial = 3", lines);
    let reset_after = table.text("reset_after", r#"reset_after = "10s""#, lines);
    let cron = table.text("cron", r#"cron = "0 0 6 * * *""#, lines);
    let tz = table.text("tz", r#"tz = "Asia/Shanghai""#, lines);
    let places = [
        ("per", Field::Per, per.as_ref().map(|at| at.place)),
        ("capacity", Field::Capacity, capacity.as_ref().map(|at| at.place)),
        ("initial", Field::Initial, initial.as_ref().map(|at| at.place)),
        ("reset_after", Field::ResetAfter, reset_after.as_ref().map(|at| at.place)),
        ("cron", Field::Per, cron.as_ref().map(|at| at.place)),
        ("algorithm", Field::Rule, algorithm.as_ref().map(|at| at.place)),
        ("tz", Field::Rule, tz.as_ref().map(|at| at.place)),
    ];
    let (rule, mistakes) = RuleArguments {
        algorithm: algorithm.as_ref().map(|at| at.value),
        per: per.as_ref().map(|at| at.value),
        capacity: capacity.map(|at| at.value),
        initial: initial.map(|at| at.value),
        reset_after: reset_after.as_ref().map(|at| at.value),
        cron: cron.as_ref().map(|at| at.value),
        tz: tz.as_ref().map(|at| at.value),
    }
    .read();
    for ArgumentError { argument, message } in mistakes {
        let written = places.iter().find(|(name, ..)| *name == argument).and_then(|(_, _, place)| *place);
        lines.report(written.unwrap_or(place), message);
    }
    let places = places.into_iter().filter(|(name, ..)| !matches!(*name, "algorithm" | "tz"));
    let places = places.filter_map(|(_, field, place)| Some((field, place?))).collect();
    finish(table, rule, count, places, before, lines)
}

/// Reads what every table of a rule may have, and makes the rule complete: with its count, its name and its key.
fn finish(
    mut table: Table<'_>,
    rule: Rule,
    count: Option<At<u64>>,
    mut places: Vec<(Field, Place)>,
    mistakes_before: usize,
    lines: &mut Lines<'_>,
) -> FileRule {
    let place = table.place();
    let key = table.text("key", r#"key = "{@ip}""#, lines);
    let name = table.text("name", r#"name = "daily""#, lines);
    let key = key.filter(|key| check_key(key, lines)).map(|key| key.to_owned());
    if let Some(name) = &name {
        check_name(name, lines);
    }
    table.finish(lines);
    places.extend(count.as_ref().map(|count| (Field::Count, count.place)));
    places.extend(name.as_ref().map(|name| (Field::Name, name.place)));
    let rule = match name {
        Some(name) => rule.named(name.value.to_owned()),
        None => rule,
    };
    let rule = match count {
        Some(count) => rule.with_count(count.value),
        None => rule.varying(),
    };
    FileRule { rule, key, place, places, is_complete: lines.mistakes() == mistakes_before }
}

/// Reports a name that was meant to show a value.
pub(super) fn check_name(name: &At<&str>, lines: &mut Lines<'_>) {
    if name.value.contains(['{', '}']) {
        lines.report(name.place, NAME_WITH_BRACES);
    } else {
        lines.ok_or_report(name.place, TemplateUse::Name.check_fixed_text(name.value, |_| false));
    }
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
