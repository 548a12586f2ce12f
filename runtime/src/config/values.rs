//! The values of the context that requests have, as far as a file lists them.

use super::lines::{At, Lines};
use super::table::Table;
use crate::bounds::MOST_TEXTS;

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
