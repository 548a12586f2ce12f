//! A policy of the file.

use std::sync::Arc;

use tallygate_rules::{Costs, CountedSubject, OnOutage, is_blank, validate_deadline, validate_warn_at};

use super::change::PolicyChange;
use super::lines::{At, Lines};
use super::plans::{ListedPlans, Plans};
use super::request_limits::RequestLimits;
use super::rules::{self, PolicyParts, RuleList, check_key, check_rules, known_rules};
use super::table::{Entry, Table};
use crate::bounds::POLICY_NAME_BYTES;
use crate::policy::PolicySettings;

/// The settings that a file may change without rules.
const SETTINGS: [&str; 6] = ["on_outage", "deadline", "warn_at", "prefetch", "plans", "shadow"];

/// Reads a policy. Returns how it changes one of the program; `None` if it is mistaken, or for `requests`.
pub(super) fn read(
    policy: Entry<'_>,
    plans: &Arc<ListedPlans>,
    requests: &mut RequestLimits,
    lines: &mut Lines<'_>,
) -> Option<PolicyChange> {
    let Entry { name, value } = policy;
    check_name(&name, lines);
    let message = || format!("a policy must be a table, like `[policy.{:?}]`", name.value);
    let table = lines.ok_or_report(value.place, value.value.as_table().ok_or_else(message))?;
    let mut table = Table::new(table, name.place, lines);
    let is_for_requests = table.has("match");
    if is_for_requests || !SETTINGS.iter().any(|name| table.has(name)) {
        table.require("rules", rules::EXAMPLE);
    }
    let rules = rules::take(&mut table, lines);
    let key = table.key(lines);
    let settings = settings(&mut table, rules.as_ref(), lines);
    let parts = PolicyParts { name, rules, key, settings };
    if is_for_requests {
        requests.read(parts, table, plans, lines);
        return None;
    }
    change(parts, table, plans, lines)
}

fn check_name(name: &At<&str>, lines: &mut Lines<'_>) {
    if is_blank(name.value) {
        lines.report(name.place, "the name of a policy must not be empty, like `[policy.\"sms.send\"]`");
    }
    if name.value.len() > POLICY_NAME_BYTES {
        lines.report(name.place, format!("the name of a policy has {POLICY_NAME_BYTES} bytes at most; shorten it"));
    }
    rules::check_name(name, lines);
}

/// Reads a policy that changes one of the program.
fn change(
    parts: PolicyParts<'_>,
    mut table: Table<'_>,
    plans: &Arc<ListedPlans>,
    lines: &mut Lines<'_>,
) -> Option<PolicyChange> {
    let before = lines.mistakes();
    let of_attribute = |name: &str| {
        format!("`{name}` of a function is an argument of its attribute; in a file it is for requests, beside `match`")
    };
    for name in ["ban", "cost", "longest_pause", "message", "refund_if", "reject"] {
        if let Some(entry) = table.take(name) {
            lines.report(entry.name.place, of_attribute(name));
        }
    }
    for message in parts.rules.iter().flat_map(|rules| &rules.value).filter_map(|rule| rule.message.as_ref()) {
        lines.report(message.place, of_attribute("message"));
    }
    if let Some(entry) = table.take("exempt_paths") {
        lines.report(entry.name.place, "`exempt_paths` is for requests, beside `match`");
    }
    if let Some(entry) = table.take("plan") {
        let message = "`plan` is for requests, beside `match`; the code of a function asks for a count of `plans` by \
                       `Limiter::plan_count`";
        lines.report(entry.name.place, message);
    }
    let plans = Plans::take(&mut table, plans, lines);
    let ends_prefetch = ends_prefetch(&mut table, lines);
    let shadow = table.flag("shadow", lines);
    table.take("match");
    table.finish_policy(parts.name.value, lines);
    let PolicyParts { name, rules, key, settings } = parts;
    let shadow = shadow.map(|shadow| shadow.value);
    let settings = PolicySettings { takes_nothing_ahead: ends_prefetch, shadow, ..settings };
    let key = key.filter(|key| check_key(key, lines));
    if let Some(rules) = &rules {
        // Only the program knows what its calls cost, and how they get their subjects.
        let main = key.as_ref().map(|key| key.value);
        check_rules(rules, |rule| CountedSubject::labelled(rule.label(main)), Costs::Recounted, lines);
    }
    (lines.mistakes() == before).then(|| {
        let key = key.map(|key| key.to_owned());
        let rules = rules.map(|rules| rules.value).unwrap_or_default();
        PolicyChange { name: name.value.to_owned(), place: name.place, key, rules, settings, plans }
    })
}

/// Takes `prefetch = false`. A duration would begin new tallies, which a file must not do.
fn ends_prefetch(table: &mut Table<'_>, lines: &mut Lines<'_>) -> bool {
    let Some(Entry { value, .. }) = table.take("prefetch") else { return false };
    let is_off = value.value.as_bool() == Some(false);
    if !is_off {
        let message = "`prefetch` of a function is an argument of its attribute; in a file, `prefetch = false` has each call \
                       ask Redis";
        lines.report(value.place, message);
    }
    is_off
}

fn settings(table: &mut Table<'_>, rules: Option<&RuleList>, lines: &mut Lines<'_>) -> PolicySettings {
    let on_outage = table.text("on_outage", r#"on_outage = "local""#, lines);
    let on_outage = on_outage.and_then(|text| lines.read(text, str::parse::<OnOutage>)).map(|read| read.value);
    let deadline = table.duration("deadline", r#"deadline = "50ms""#, lines);
    if let Some(At { value, place }) = &deadline {
        lines.ok_or_report(*place, validate_deadline(*value));
    }
    let warn_at = table.fraction("warn_at", "warn_at = 0.8", lines);
    let warn_at = warn_at
        .filter(|share| lines.ok_or_report(share.place, validate_warn_at(share.value, known_rules(rules))).is_some());
    let (deadline, warn_at) = (deadline.map(|deadline| deadline.value), warn_at.map(|share| share.value));
    PolicySettings { on_outage, deadline, warn_at, ..PolicySettings::NONE }
}
