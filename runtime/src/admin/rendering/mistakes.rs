//! The mistakes in the values and subjects that were given.

use std::collections::BTreeSet;

use tallygate_rules::did_you_mean;

use super::{Lack, Missing, Rendering};
use crate::admin::__shared::remedy;
use crate::admin::template::{self, KeyTemplate, Placeholder};
use crate::error::{Error, Setting};

impl Rendering<'_> {
    /// Checks that each subject is given once, and only if the call has it.
    pub(super) fn check_labels(&self) -> Result<(), Error> {
        let labels = || self.policy.subjects().map(|subject| subject.label());
        for (index, (label, _)) in self.others.iter().enumerate() {
            if !labels().any(|known| known == label) {
                let meant = did_you_mean(label, labels());
                return Err(self.refuse(&format!("it has no rule on a subject `{label}`{meant}")));
            }
            if self.others[..index].iter().any(|(earlier, _)| earlier == label) {
                return Err(self.refuse(&format!("the subject `{label}` is given twice; give it once")));
            }
        }
        let not_asked = self.left_out.iter().find(|label| self.whole(label.as_deref()).is_some());
        not_asked.map_or(Ok(()), |label| {
            let subject = in_words(label.as_deref());
            Err(self.refuse(&format!("this request does not use {subject}; leave it out")))
        })
    }

    pub(super) fn check_main(&self) -> Result<(), Error> {
        if self.main.is_none() || self.policy.has_main_subject() {
            return Ok(());
        }
        Err(self.refuse("no rule counts a main subject; leave it out, and give the others by their labels"))
    }

    /// Refuses a text for a value that the key shows by `Debug`: only the program knows how `Debug` writes it.
    pub(in crate::admin) fn check_text(&self, debugged: Option<&str>) -> Result<(), Error> {
        debugged.map_or(Ok(()), |name| Err(self.debugged(name)))
    }

    fn debugged(&self, name: &str) -> Error {
        self.refuse_values(&format!("its key has `{name}` as `Debug` writes it, which only the program knows"))
    }

    /// Refuses values if no known key shows them.
    pub(super) fn check_values_have_keys(&self, has_no_keys: bool, missing: &[Missing]) -> Result<(), Error> {
        let has_values = !self.values.is_empty() || !self.named.is_empty();
        match missing.first() {
            Some((label, Lack::Key)) if has_no_keys && has_values => Err(self.unknown_key(label.as_deref())),
            _ => Ok(()),
        }
    }

    pub(in crate::admin) fn check_secret<'p>(
        &self,
        mut placeholders: impl Iterator<Item = &'p Placeholder>,
    ) -> Result<(), Error> {
        match placeholders.find(|placeholder| placeholder.is_hashed()) {
            Some(hashed) if self.limiter.secret().is_public() && !self.is_hashed_without_secret => {
                Err(self.refuse(&format!(
                    "its key has the digest of `{}`; give the limiter the secret of the programs (`LimiterBuilder::secret`), or \
                     say that they have none with `without_secret`",
                    hashed.name()
                )))
            }
            // Without a secret, the caller has confirmed that the programs have none.
            Some(hashed) if !self.limiter.secret().is_public() && !self.policy.may_have(self.limiter.secret()) => {
                let before = format!("policy `{}`: its key has the digest of `{}`, and ", self.policy.name(), hashed.name());
                let mistake = " is not the secret of the programs";
                let text = format!("{before}`LimiterBuilder::secret`{mistake}; give the limiter theirs, or none if they have none");
                Err(Error::of_setting(Setting::Secret, text, before, mistake))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::admin) fn wrong_address(&self) -> Error {
        self.refuse(&format!("`{}`: {}", template::CLIENT_ADDRESS, template::CLIENT_ADDRESS_REMEDY))
    }

    pub(super) fn check_tags(&self, untagged: Option<(&str, String)>) -> Result<(), Error> {
        untagged.map_or(Ok(()), |(name, tags)| {
            Err(self.refuse(&format!("the value of `{name}` begins with the name of one of them; write {tags}")))
        })
    }

    /// Returns the error for a name that is no value of the subjects to make.
    pub(super) fn unknown<'n>(&self, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> Error {
        self.refuse(&match self.owner(name) {
            Some(owner) => format!("`{name}` belongs to {owner}; leave it out"),
            None => format!("no key shows `{name}`{}", remedy("value", name, known)),
        })
    }

    /// Returns the first subject whose key shows that value, and why it is not made of values.
    fn owner(&self, name: &str) -> Option<String> {
        let main = self.policy.has_main_subject().then(|| (None, self.policy.key()));
        let others = self.policy.subjects().map(|subject| (Some(subject.label()), subject.key()));
        let read = |key: &str| KeyTemplate::read(self.policy.name(), key);
        let shows = |key: &str| read(key).is_ok_and(|key| key.names().any(|known| known == name));
        let (label, _) = main.into_iter().chain(others).find(|(_, key)| key.is_some_and(shows))?;
        let why = if self.whole(label).is_some() { "is given as a whole" } else { "this request does not use" };
        Some(format!("{}, which {why}", in_words(label)))
    }

    /// Returns the error for subjects that are not made.
    pub(super) fn missing(&self, missing: &[Missing]) -> Error {
        let mut names: Vec<String> = Vec::new();
        for (label, lack) in missing {
            match lack {
                Lack::Key => return self.unknown_key(label.as_deref()),
                Lack::Debugged(name) => return self.debugged(name),
                Lack::Values(lacking) => names.extend(lacking.iter().map(|name| format!("`{name}`"))),
            }
        }
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        self.refuse(&format!("a value is missing for {}", names.join(", ")))
    }

    pub(super) fn unknown_key(&self, label: Option<&str>) -> Error {
        let (subject, method) = match label {
            None => ("its main subject".to_owned(), "key"),
            Some(label) => (format!("its subject `{label}`"), "key_on"),
        };
        self.refuse_values(&format!(
            "how {subject} is written is not known unless the program says it with `PolicyBuilder::{method}`"
        ))
    }

    /// Refuses to make a subject from values, because its key is not known or cannot be written from values.
    fn refuse_values(&self, mistake: &str) -> Error {
        let before = format!("policy `{}`: {mistake}; ", self.policy.name());
        Error::of_setting(Setting::Subject, format!("{before}give the subject as a whole"), before, "")
    }

    pub(super) fn refuse(&self, mistake: &str) -> Error {
        Error::new(format!("policy `{}`: {mistake}", self.policy.name()))
    }
}

fn in_words(label: Option<&str>) -> String {
    label.map_or_else(|| "the main subject".to_owned(), |label| format!("the subject `{label}`"))
}
