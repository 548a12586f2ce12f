//! The checks of a policy's texts that are written by hand: its name, its labels and its keys.

use tallygate_rules::{NAME_WITH_BRACES, TemplateUse, is_blank, scan};

use crate::policy::Templates;

/// Returns every mistake in the texts of a policy, but for names that are blank. The names are its own and those of rules.
pub(super) fn mistakes<'a>(
    names: impl Iterator<Item = &'a str>,
    labels: &[&str],
    templates: &Templates,
) -> Vec<String> {
    let of_names = names.filter_map(|name| check_name(name).err());
    let of_labels = labels.iter().any(|label| is_blank(label)).then(|| {
        "a label must not be empty; name the subject that the rule counts, like `rule_on(\"network\", …)`".to_owned()
    });
    let of_keys =
        templates.iter().filter_map(|(label, key)| check_key(key).err().or_else(|| check_label(label?, labels)));
    of_names.chain(of_labels).chain(of_keys).collect()
}

fn check_name(name: &str) -> Result<(), String> {
    if name.contains(['{', '}']) {
        return Err(NAME_WITH_BRACES.to_owned());
    }
    TemplateUse::Name.check_fixed_text(name, |_| false)
}

/// An empty key is legal: all calls are one subject.
fn check_key(key: &str) -> Result<(), String> {
    if is_blank(key) && !key.is_empty() {
        return Err("`key` must not be empty; say how the subject is written, like `key(\"sms:{phone}\")`".to_owned());
    }
    scan(key).map_err(|mistake| format!("`key`: {mistake}"))?;
    TemplateUse::Key.check_fixed_text(key, |_| false)
}

fn check_label(label: &str, counted: &[&str]) -> Option<String> {
    (!counted.contains(&label)).then(|| {
        format!("`key_on` names the subject `{label}`, which no rule counts; add one by `rule_on`, or remove it")
    })
}
