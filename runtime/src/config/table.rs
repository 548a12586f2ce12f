//! A table of the file, whose entries are taken out of it by their names.

use tallygate_rules::{
    TemplateUse, argument_meant, missing_argument, must_be_fraction, must_be_number, must_be_text, parse_duration,
    read_duration, unknown_argument,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::lines::{At, Lines};
use crate::bounds::{KEY_BYTES, MOST_TEXTS};
use crate::context::ContextMessage;
use crate::error::Place;

const KEY: &str = r#"key = "{@ip}""#;
const MESSAGE: &str = r#"message = "try again in {@retry_after}""#;

/// A table. An entry is removed when it is read by its name, so the entries that are left are unknown.
pub(super) struct Table<'t> {
    pub(super) place: Place,
    entries: Vec<Entry<'t>>,
    /// The names that were asked for.
    known: Vec<&'static str>,
    /// The places of the values that were taken.
    values: Vec<(&'static str, Place)>,
    missing: Vec<String>,
}

pub(super) struct Entry<'t> {
    pub(super) name: At<&'t str>,
    pub(super) value: At<&'t DeValue<'t>>,
}

impl<'t> Table<'t> {
    pub(super) fn new(table: &'t DeTable<'t>, place: Place, lines: &Lines<'_>) -> Self {
        Self { place, entries: entries(table, lines), known: Vec::new(), values: Vec::new(), missing: Vec::new() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name.value == name)
    }

    pub(super) fn has_table(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name.value == name && entry.value.value.is_table())
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Requires an entry that was not taken yet.
    pub(super) fn require(&mut self, name: &str, example: &str) {
        if !self.has(name) {
            self.missing.push(missing_argument(name, example));
        }
    }

    /// Reports an entry that has no place in any file.
    pub(super) fn refuse(&mut self, name: &str, remedy: &str, lines: &mut Lines<'_>) {
        for refused in self.entries.extract_if(.., |entry| entry.name.value == name) {
            lines.report(refused.name.place, format!("`{name}` {remedy}"));
        }
    }

    pub(super) fn take(&mut self, name: &'static str) -> Option<Entry<'t>> {
        self.known.push(name);
        let at = self.entries.iter().position(|entry| entry.name.value == name)?;
        let entry = self.entries.remove(at);
        self.values.push((name, entry.value.place));
        Some(entry)
    }

    /// Returns the place of the value of an entry that was taken, or of the table.
    pub(super) fn place_of(&self, name: &str) -> Place {
        self.values.iter().find(|(taken, _)| *taken == name).map_or(self.place, |(_, place)| *place)
    }

    /// Takes `name = "text"`.
    pub(super) fn text(&mut self, name: &'static str, example: &str, lines: &mut Lines<'_>) -> Option<At<&'t str>> {
        lines.read(self.take(name)?.value, |value| {
            let meant = || duration_like(example, name, value.as_integer()?.as_str());
            value.as_str().ok_or_else(|| must_be_text(name, meant().as_deref().unwrap_or(example)))
        })
    }

    /// Takes `key = "{@ip}"`. A key that is too long is reported, and an example takes its place.
    pub(super) fn key(&mut self, lines: &mut Lines<'_>) -> Option<At<&'t str>> {
        let key = self.text("key", KEY, lines)?;
        if key.value.len() <= KEY_BYTES {
            return Some(key);
        }
        lines.report(
            key.place,
            format!("`key` has {KEY_BYTES} bytes at most, and this one has {}; shorten it", key.value.len()),
        );
        Some(At { value: "{@ip}", ..key })
    }

    /// Takes `message = "text with {@placeholders}"`.
    pub(super) fn message(&mut self, template_use: TemplateUse, lines: &mut Lines<'_>) -> Option<At<ContextMessage>> {
        let text = self.text("message", MESSAGE, lines)?;
        lines.read(text, |text| ContextMessage::parse(text, template_use))
    }

    /// Takes `name = "60s"`.
    pub(super) fn duration(
        &mut self,
        name: &'static str,
        example: &str,
        lines: &mut Lines<'_>,
    ) -> Option<At<std::time::Duration>> {
        let text = self.text(name, example, lines)?;
        lines.read(text, |text| read_duration(name, text))
    }

    /// Takes `name = 10`. A number that is too large for the type is also too large for a rule, whose check reports it
    /// better.
    pub(super) fn number(&mut self, name: &'static str, example: &str, lines: &mut Lines<'_>) -> Option<At<u64>> {
        lines.read(self.take(name)?.value, |value| {
            whole_number(value).ok_or_else(|| {
                let digits = value.as_str().filter(|text| text.parse::<u64>().is_ok());
                let meant = digits.map(|digits| format!("{name} = {digits}"));
                must_be_number(name, meant.as_deref().unwrap_or(example))
            })
        })
    }

    /// Takes all entries, of which each is a number.
    pub(super) fn numbers(self, lines: &mut Lines<'_>) -> Vec<(At<&'t str>, u64)> {
        let number = |Entry { name, value }: Entry<'t>| {
            let message = || format!("`{0}` must be a number, like `{0} = 100`", name.value);
            let number = lines.ok_or_report(value.place, whole_number(value.value).ok_or_else(message))?;
            Some((name, number))
        };
        self.into_entries().into_iter().filter_map(number).collect()
    }

    /// Takes all entries, in the order in which they are written.
    pub(super) fn into_entries(self) -> Vec<Entry<'t>> {
        self.entries
    }

    /// Takes `name = 0.8`.
    pub(super) fn fraction(&mut self, name: &'static str, example: &str, lines: &mut Lines<'_>) -> Option<At<f64>> {
        lines.read(self.take(name)?.value, |value| {
            let number = value.as_float().and_then(|float| float.as_str().parse().ok());
            let number = number.or_else(|| value.as_integer()?.as_str().parse().ok());
            number.ok_or_else(|| must_be_fraction(name, example))
        })
    }

    /// Takes `name = true`.
    pub(super) fn flag(&mut self, name: &'static str, lines: &mut Lines<'_>) -> Option<At<bool>> {
        let message = || format!("`{name}` must be `true` or `false`, like `{name} = true`");
        lines.read(self.take(name)?.value, |value| value.as_bool().ok_or_else(message))
    }

    /// Takes `name = { … }`.
    pub(super) fn table(&mut self, name: &'static str, example: &str, lines: &mut Lines<'_>) -> Option<Table<'t>> {
        let Entry { name: At { place, .. }, value } = self.take(name)?;
        let message = || format!("`{name}` must be a table, like `{example}`");
        let table = lines.ok_or_report(value.place, value.value.as_table().ok_or_else(message))?;
        Some(Table::new(table, place, lines))
    }

    /// Takes `name = […]`.
    pub(super) fn list(
        &mut self,
        name: &'static str,
        example: &str,
        lines: &mut Lines<'_>,
    ) -> Option<At<Vec<At<&'t DeValue<'t>>>>> {
        let message = || format!("`{name}` must be a list, like `{example}`");
        let At { value, place } = lines.read(self.take(name)?.value, |value| value.as_array().ok_or_else(message))?;
        Some(At { value: value.iter().map(|value| at(value, lines)).collect(), place })
    }

    /// Takes `name = "text"` or `name = ["text", "text"]`.
    pub(super) fn texts(
        &mut self,
        name: &'static str,
        example: &str,
        lines: &mut Lines<'_>,
    ) -> Option<Vec<At<&'t str>>> {
        let written = self.take(name)?.value;
        let message = || format!("`{name}` must be a text in quotes or a list of them, like `{example}`");
        if let Some(text) = written.value.as_str() {
            return Some(vec![At { value: text, place: written.place }]);
        }
        let list = lines.ok_or_report(written.place, written.value.as_array().ok_or_else(message))?;
        if list.is_empty() {
            lines.report(written.place, format!("`{name}` must not be empty, like `{example}`"));
        }
        if list.len() > MOST_TEXTS {
            let message = format!("`{name}` has {} texts, and {MOST_TEXTS} are the most; write fewer", list.len());
            lines.report(written.place, message);
            return None;
        }
        let texts =
            list.iter().filter_map(|text| lines.read(at(text, lines), |text| text.as_str().ok_or_else(message)));
        Some(texts.collect())
    }

    /// Reports entries of a policy that are unknown or missing.
    pub(super) fn finish_policy(mut self, name: &str, lines: &mut Lines<'_>) {
        let nested: Vec<_> = self.entries.extract_if(.., |entry| entry.value.value.is_table()).collect();
        for Entry { name: At { value: inner, place }, .. } in &nested {
            let message = format!(
                "unknown table `{inner}`; a name with a dot stands in quotes, like `[policy.\"{name}.{inner}\"]`"
            );
            lines.report(*place, message);
        }
        if nested.is_empty() {
            self.finish(lines);
        }
    }

    /// Reports entries that are unknown or missing. Returns the places of the values that were taken.
    pub(super) fn finish(self, lines: &mut Lines<'_>) -> Vec<(&'static str, Place)> {
        for unknown in &self.entries {
            if lines.is_full() {
                break;
            }
            lines.report(unknown.name.place, unknown_argument(unknown.name.value, &self.known));
        }
        // An entry that seems to be missing may be the one that is unknown.
        for missing in self.missing.iter().filter(|_| self.entries.is_empty()) {
            lines.report(self.place, missing.as_str());
        }
        self.values
    }
}

/// Returns the entries of a table, in the order in which they are written.
pub(super) fn entries<'t>(table: &'t DeTable<'t>, lines: &Lines<'_>) -> Vec<Entry<'t>> {
    let entry = |(name, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
        let text: &std::borrow::Cow<'t, str> = name.get_ref();
        Entry { name: At { value: &**text, place: lines.place(&name.span()) }, value: at(value, lines) }
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.name.place);
    entries
}

/// Returns the number of a value, or the greatest `u64` if it is greater.
pub(super) fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    let digits = value.as_integer().filter(|integer| !integer.as_str().starts_with('-'))?;
    Some(u64::from_str_radix(digits.as_str(), digits.radix()).unwrap_or(u64::MAX))
}

/// Returns the argument with that number of seconds, if the example has a duration.
fn duration_like(example: &str, name: &str, digits: &str) -> Option<String> {
    let is_duration = example.split('"').nth(1).is_some_and(|text| parse_duration(text).is_ok());
    argument_meant(name, digits).filter(|_| is_duration)
}

/// Returns a value with its place.
pub(super) fn at<'t>(value: &'t Spanned<DeValue<'t>>, lines: &Lines<'_>) -> At<&'t DeValue<'t>> {
    At { value: value.get_ref(), place: lines.place(&value.span()) }
}
