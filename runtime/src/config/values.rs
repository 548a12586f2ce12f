//! The values of the context that requests have, as far as a file lists them.

#[cfg(feature = "web")]
use std::collections::HashSet;

use super::lines::{At, Lines};
#[cfg(feature = "web")]
use super::request_limit::RequestLimit;
use super::table::Table;
#[cfg(feature = "web")]
use crate::bounds::MOST_SUGGESTIONS;
use crate::bounds::MOST_TEXTS;
#[cfg(feature = "web")]
use crate::context::{is_of_requests, is_unknown, known_value_meant, value_meant};
#[cfg(feature = "web")]
use crate::error::Mistake;

const VALUES: &str = r#"values = ["user", "plan"]"#;

/// Takes the list out of the file.
pub(super) fn take(root: &mut Table<'_>, lines: &mut Lines<'_>) -> Option<Vec<String>> {
    let list = root.list("values", VALUES, lines)?;
    if list.value.len() > MOST_TEXTS {
        let message = format!("`values` has {} texts, and {MOST_TEXTS} are the most; write fewer", list.value.len());
        lines.report(list.place, message);
        return None;
    }
    let name = |written: At<_>| {
        let value: &toml::de::DeValue<'_> = written.value;
        let name = value.as_str().filter(|name| is_name(name)).map(str::to_owned);
        let message = || format!("`values` lists names of letters, digits and `_`, like `{VALUES}`");
        lines.ok_or_report(written.place, name.ok_or_else(message))
    };
    Some(list.value.into_iter().filter_map(name).collect())
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// Reports keys that show a value which is not listed.
#[cfg(feature = "web")]
pub(super) fn check(limits: &[RequestLimit], listed: &[String], lines: &mut Lines<'_>) {
    let known: HashSet<_> = listed.iter().collect();
    let unlisted = shown(limits).filter(|shown| !known.contains(&shown.value));
    for (number, At { value: name, place }) in unlisted.enumerate() {
        let suggested = listed.iter().filter(|_| number < MOST_SUGGESTIONS);
        let meant = value_meant(name, suggested.map(String::as_str));
        let remedy = if meant.is_empty() { "; add it there, if the program finds it in requests" } else { &meant };
        lines.report(*place, format!("`{{@{name}}}` is no value that `values` lists{remedy}"));
    }
}

/// Returns a warning for each value, if the file has no list of values.
#[cfg(feature = "web")]
pub(super) fn unlisted(limits: &[RequestLimit]) -> impl Iterator<Item = Mistake> {
    shown(limits).map(|At { value: name, place }| {
        let meant = value_meant(name, []);
        Mistake::new(
            *place,
            format!("whether requests have `{{@{name}}}`, only the program knows; list its values, like `values = [\"{name}\"]`{meant}"),
        )
    })
}

/// Returns a mistake for each value that no layer of this process finds, unless a limit in force shows it, too.
#[cfg(feature = "web")]
pub(super) fn unknown(limits: &[RequestLimit], in_force: &[RequestLimit]) -> impl Iterator<Item = Mistake> {
    let names_in_force: HashSet<_> = in_force.iter().flat_map(|limit| &limit.shown).map(|shown| &shown.value).collect();
    let unknown = shown(limits).filter(move |shown| is_unknown(&shown.value) && !names_in_force.contains(&shown.value));
    unknown.enumerate().map(|(number, At { value: name, place })| {
        let meant = if number < MOST_SUGGESTIONS { known_value_meant(name) } else { String::new() };
        let add =
            "; add it with `web::Layer::value`, or say with `context::declare` that contexts of the program have it";
        let remedy = if meant.is_empty() { add } else { &meant };
        Mistake::new(*place, format!("no layer of this program finds `{{@{name}}}` in requests{remedy}"))
    })
}

/// Returns the values that are shown, except those that each request has.
#[cfg(feature = "web")]
fn shown(limits: &[RequestLimit]) -> impl Iterator<Item = &At<String>> {
    limits.iter().flat_map(|limit| &limit.shown).filter(|shown| !is_of_requests(&shown.value))
}
