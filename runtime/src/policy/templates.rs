//! The texts of a policy: the templates of its subjects, and the checks of texts that are written by hand.

use std::borrow::Cow;

use tallygate_rules::{NAME_WITH_BRACES, TemplateUse, is_blank, scan};

/// The known templates of a policy's subjects. They decide nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    /// Each template with the label of its subject; `None` for the main one.
    known: Vec<(Option<Cow<'static, str>>, Cow<'static, str>)>,
}

impl Templates {
    /// Sets or replaces the template of the subject with that label.
    pub(crate) fn set(&mut self, label: Option<Cow<'static, str>>, template: Cow<'static, str>) {
        match self.known.iter_mut().find(|(known, _)| *known == label) {
            Some((_, known)) => *known = template,
            None => self.known.push((label, template)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        self.known.iter().map(|(label, template)| (label.as_deref(), &**template))
    }

    pub(crate) fn get(&self, label: Option<&str>) -> Option<&str> {
        let (_, template) = self.known.iter().find(|(known, _)| known.as_deref() == label)?;
        Some(template)
    }
}

/// Returns every mistake in the texts of a policy except blank names. `names` are those of the policy and its rules.
pub(super) fn mistakes_in_texts<'a>(
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

/// Checks that a name does not look like a template.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.contains(['{', '}']) {
        return Err(NAME_WITH_BRACES.to_owned());
    }
    TemplateUse::Name.check_fixed_text(name, |_| false)
}

/// An empty key is allowed: all calls are one subject.
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
