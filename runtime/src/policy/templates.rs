//! How the subjects of a policy are written: for people and tools.

use std::borrow::Cow;

/// How the subjects of a policy are written, as far as that is known. It decides nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    /// By the label of the subject; `None` is the main one.
    known: Vec<(Option<Cow<'static, str>>, Cow<'static, str>)>,
}

impl Templates {
    /// Sets the template of the subject of that label, in place of the one that there is.
    pub(crate) fn set(&mut self, label: Option<Cow<'static, str>>, template: Cow<'static, str>) {
        match self.known.iter_mut().find(|(known, _)| *known == label) {
            Some((_, known)) => *known = template,
            None => self.known.push((label, template)),
        }
    }

    /// Returns the templates, by the labels of their subjects.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        self.known.iter().map(|(label, template)| (label.as_deref(), &**template))
    }

    /// Returns the template of the subject of that label.
    pub(crate) fn of(&self, label: Option<&str>) -> Option<&str> {
        let (_, template) = self.known.iter().find(|(known, _)| known.as_deref() == label)?;
        Some(template)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use crate::policy::{Policy, Replacement};

    #[test]
    fn variants_of_a_policy_have_its_templates() {
        let hour = Duration::from_secs(3_600);
        let rules =
            Policy::builder("p").rule(Rule::sliding_window(1, hour)).rule_on("ip", Rule::sliding_window(2, hour));
        let policy = rules.key("old").key("u:{id}").key_on("ip", "{ip}").build().unwrap();
        let replacement = Replacement::All(vec![Rule::sliding_window(9, 2 * hour)]);
        let replaced = policy.with_counts([5]).with_replacement(None, &replacement).unwrap();
        for variant in [&policy, &policy.with_counts([5]), &replaced] {
            assert_eq!((variant.key(), variant.templates().of(Some("ip"))), (Some("u:{id}"), Some("{ip}")));
            assert!(variant.origin().is(&policy));
            assert_eq!(variant.templates().of(Some("network")), None);
        }
    }
}
