//! Making the subjects of a call from values.

use tallygate_rules::did_you_mean;

use super::registered::RegisteredPolicy;
use super::spelling::remedy;
use super::template::{self, KeyTemplate, Placeholder, Subjects};
use crate::error::{Error, Setting};
use crate::limiter::Limiter;
use crate::observe::opaque_debug;
use crate::subject::Subject;

/// Makes the subjects of a call from values: see [`RegisteredPolicy::render`].
///
/// Values are given in the order of [`placeholders`](RegisteredPolicy::placeholders), or by name. A subject that is
/// given as a whole, as it stands in keys, needs no values.
#[derive(Clone)]
#[must_use = "nothing is made until `build` is called"]
pub struct Rendering<'a> {
    policy: &'a RegisteredPolicy,
    limiter: &'a Limiter,
    values: Vec<String>,
    named: Vec<(String, String)>,
    main: Option<Subject>,
    others: Vec<(String, Subject)>,
    is_hashed_without_secret: bool,
}

/// The label of a subject, or `None` for the main one, and its placeholders without a value.
type Missing = (Option<String>, Vec<String>);

/// A placeholder and the value that was given for it.
type Given<'r> = (&'r str, &'r str);

impl RegisteredPolicy {
    /// Starts making the subjects of a call from values, as the processes do, with filters.
    ///
    /// The filter `hash` needs the secret of the processes, so the limiter has to have it.
    pub fn render<'a>(&'a self, limiter: &'a Limiter) -> Rendering<'a> {
        Rendering {
            policy: self,
            limiter,
            values: Vec::new(),
            named: Vec::new(),
            main: None,
            others: Vec::new(),
            is_hashed_without_secret: false,
        }
    }
}

impl Rendering<'_> {
    /// Gives the value of the next placeholder that is not given by name.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Gives the values of the next placeholders.
    pub fn values<V: Into<String>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.values.extend(values.into_iter().map(Into::into));
        self
    }

    /// Gives the value of the placeholder of that name.
    pub fn named(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.named.push((name.into(), value.into()));
        self
    }

    /// Gives the main subject as a whole. [`Subject::from_rendered`] reads its text. Its placeholders then need no
    /// values.
    pub fn main(mut self, subject: Subject) -> Self {
        self.main = Some(subject);
        self
    }

    /// Gives the subject of that label as a whole.
    pub fn subject(mut self, label: impl Into<String>, subject: Subject) -> Self {
        self.others.push((label.into(), subject));
        self
    }

    /// Makes the subject of that label alone, or the main one without a label. [Everyone](Subject::everyone) stands in place
    /// of the others, so their values are not taken.
    pub fn only(mut self, label: Option<&str>) -> Self {
        if label.is_some() && self.policy.has_main_subject() {
            self.main = Some(Subject::everyone());
        }
        let others = self.policy.subjects().map(|subject| subject.label()).filter(|other| Some(*other) != label);
        let others: Vec<_> = others.map(|other| (other.to_owned(), Subject::everyone())).collect();
        self.others.splice(0..0, others);
        self
    }

    /// Confirms that the processes have no secret, so that the filter `hash` uses the public key. Without a secret and
    /// without this, a key with `hash` is refused: a digest with the wrong key is another subject.
    pub fn without_secret(mut self) -> Self {
        self.is_hashed_without_secret = true;
        self
    }

    /// Returns the subjects.
    ///
    /// # Errors
    ///
    /// * A value is missing, or there are too many, or a name is no placeholder of a key.
    /// * The key of a subject is not known, or shows a value by `Debug`, and the subject was not given as a whole.
    /// * The main subject was given as a whole, and no rule counts it.
    /// * A key needs the secret of the processes, which the limiter does not have.
    /// * The value of `@ip` is an IPv6 address. The processes count its network, whose length only they know.
    pub fn build(self) -> Result<Subjects, Error> {
        let (subjects, missing) = self.build_given()?;
        if missing.is_empty() { Ok(subjects) } else { Err(self.missing(&missing)) }
    }

    /// Returns the subjects that can be made, and the labels of the others, `None` for the main one.
    /// [Everyone](Subject::everyone) stands in their place, so ignore what the rules on them report.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), except missing values. It is an error if no subject can be made.
    pub fn build_partly(self) -> Result<(Subjects, Vec<Option<String>>), Error> {
        let (subjects, missing) = self.build_given()?;
        let all = usize::from(self.policy.has_main_subject()) + self.policy.subjects().count();
        if missing.len() == all && !missing.is_empty() {
            return Err(self.missing(&missing));
        }
        Ok((subjects, missing.into_iter().map(|(label, _)| label).collect()))
    }

    /// Returns the error for missing values.
    fn missing(&self, missing: &[Missing]) -> Error {
        let mut names: Vec<String> = Vec::new();
        for name in missing.iter().flat_map(|(_, names)| names).map(|name| format!("`{name}`")) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        self.refuse(&format!("a value is missing for {}", names.join(", ")))
    }

    fn build_given(&self) -> Result<(Subjects, Vec<Missing>), Error> {
        let policy = self.policy;
        self.check_labels()?;
        let mut templates = Vec::new();
        if self.main.is_none() && policy.has_main_subject() {
            templates.push((None, self.template(None, policy.key())?));
        }
        for subject in policy.subjects().filter(|subject| self.whole(subject.label()).is_none()) {
            templates.push((Some(subject.label()), self.template(Some(subject.label()), subject.key())?));
        }
        self.check_main()?;
        let placeholders = super::template::placeholders(templates.iter().map(|(_, template)| template));
        self.check_text(templates.iter().map(|(_, template)| template))?;
        let given = self.given(&placeholders)?;
        let is_given = |name: &str| given.iter().any(|(known, _)| *known == name);
        self.check_secret(placeholders.iter().filter(|placeholder| is_given(placeholder.name())))?;
        self.check_address(&given)?;
        let value = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        self.check_tags(templates.iter().find_map(|(_, template)| template.untagged(value)))?;
        let lacks = |template: &KeyTemplate| -> Vec<String> {
            template.names().filter(|name| !is_given(name)).map(str::to_owned).collect()
        };
        let missing = templates.iter().map(|(label, template)| (label.map(str::to_owned), lacks(template)));
        let missing = missing.filter(|(_, names)| !names.is_empty()).collect();
        let render = |label: Option<&str>| {
            let (_, template) = templates.iter().find(|(known, _)| *known == label)?;
            if !lacks(template).is_empty() {
                return Some(Subject::everyone());
            }
            Some(template.subject(self.limiter.subject(), |name| value(name).unwrap_or_default()))
        };
        let main = self.main.clone().or_else(|| render(None)).unwrap_or_else(Subject::everyone);
        let other = |label: &str| Some((label.to_owned(), render(Some(label)).or_else(|| self.whole(label).cloned())?));
        let others = policy.subjects().filter_map(|subject| other(subject.label())).collect();
        Ok((Subjects { main, others }, missing))
    }

    fn template(&self, label: Option<&str>, key: Option<&str>) -> Result<KeyTemplate, Error> {
        KeyTemplate::read(self.policy.name(), key.ok_or_else(|| self.unknown_key(label))?)
    }

    /// Returns each placeholder that has a value.
    fn given<'r>(&'r self, placeholders: &'r [Placeholder]) -> Result<Vec<Given<'r>>, Error> {
        let names = || placeholders.iter().map(Placeholder::name);
        for (index, (name, _)) in self.named.iter().enumerate() {
            if !names().any(|known| known == name) {
                return Err(self.unknown(name, names()));
            }
            if self.named[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.refuse(&format!("`{name}` is given twice; give it once")));
            }
        }
        let by_name = |name: &str| self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut values = self.values.iter();
        let mut given = Vec::new();
        for name in names() {
            given.extend(by_name(name).or_else(|| values.next().map(String::as_str)).map(|value| (name, value)));
        }
        match values.count() {
            0 => Ok(given),
            _ if placeholders.is_empty() => Err(self.refuse("its keys show no values; give none")),
            _ => {
                let names: Vec<_> = names().map(|name| format!("`{name}`")).collect();
                Err(self.refuse(&format!("there are more values than its keys show, which are {}", names.join(", "))))
            }
        }
    }

    fn check_labels(&self) -> Result<(), Error> {
        let labels = || self.policy.subjects().map(|subject| subject.label());
        match self.others.iter().find(|(label, _)| !labels().any(|known| known == label)) {
            Some((label, _)) => {
                let meant = did_you_mean(label, labels());
                Err(self.refuse(&format!("it has no rule on a subject `{label}`{meant}")))
            }
            None => Ok(()),
        }
    }

    fn check_main(&self) -> Result<(), Error> {
        if self.main.is_none() || self.policy.has_main_subject() {
            return Ok(());
        }
        Err(self.refuse("no rule counts a main subject; leave it out, and give the others by their labels"))
    }

    /// Only the program knows what `Debug` writes: of a text, it has quotes.
    fn check_text<'t>(&self, mut templates: impl Iterator<Item = &'t KeyTemplate>) -> Result<(), Error> {
        match templates.find_map(KeyTemplate::debugged) {
            Some(name) => {
                Err(self
                    .refuse_values(&format!("its key has `{name}` as `Debug` writes it, which only the program knows")))
            }
            None => Ok(()),
        }
    }

    fn check_secret<'p>(&self, mut placeholders: impl Iterator<Item = &'p Placeholder>) -> Result<(), Error> {
        match placeholders.find(|placeholder| placeholder.is_hashed()) {
            Some(hashed) if self.limiter.secret().is_public() && !self.is_hashed_without_secret => {
                Err(self.refuse(&format!(
                    "its key has the digest of `{}`; give the limiter the secret of the programs, or say that they have none \
                     with `without_secret`",
                    hashed.name()
                )))
            }
            _ => Ok(()),
        }
    }

    fn check_address<'r>(&self, given: &[Given<'r>]) -> Result<(), Error> {
        // Of alternatives, the value names the one that it is for.
        let address = |&(name, value): &Given<'r>| match value.strip_prefix("ip:") {
            Some(address) if name.split('|').any(|name| name == template::CLIENT_ADDRESS) => Some(address),
            _ => (name == template::CLIENT_ADDRESS).then_some(value),
        };
        if given.iter().filter_map(address).all(template::may_be_client_address) {
            return Ok(());
        }
        Err(self.refuse(&format!("`{}`: {}", template::CLIENT_ADDRESS, template::CLIENT_ADDRESS_REMEDY)))
    }

    fn check_tags(&self, untagged: Option<(&str, String)>) -> Result<(), Error> {
        untagged.map_or(Ok(()), |(name, tags)| {
            Err(self.refuse(&format!("the value of `{name}` begins with the name of one of them; write {tags}")))
        })
    }

    /// Returns the error for a name that is no value of the subjects to make.
    fn unknown<'n>(&self, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> Error {
        let all = self.policy.placeholders().unwrap_or_default();
        if all.iter().any(|placeholder| placeholder.name() == name) {
            let mistake = format!("`{name}` is a value of a subject that is not made of values here; leave it out");
            return self.refuse(&mistake);
        }
        self.refuse(&format!("no key shows `{name}`{}", remedy(name, known)))
    }

    fn whole(&self, label: &str) -> Option<&Subject> {
        self.others.iter().find(|(known, _)| known == label).map(|(_, subject)| subject)
    }

    fn unknown_key(&self, label: Option<&str>) -> Error {
        let (subject, method) = match label {
            None => ("its main subject".to_owned(), "key"),
            Some(label) => (format!("its subject `{label}`"), "key_on"),
        };
        self.refuse_values(&format!(
            "how {subject} is written is not known unless the program says it with `PolicyBuilder::{method}`"
        ))
    }

    /// Refuses to make a subject of values, because its key is not known or cannot be written from values.
    fn refuse_values(&self, mistake: &str) -> Error {
        let before = format!("policy `{}`: {mistake}; ", self.policy.name());
        Error::of_setting(Setting::Subject, format!("{before}give the subject as a whole"), before, "")
    }

    fn refuse(&self, mistake: &str) -> Error {
        Error::new(format!("policy `{}`: {mistake}", self.policy.name()))
    }
}

// Leaves out the values, which may be personal.
opaque_debug!(Rendering<'_>, rendering => { policy: rendering.policy.name() });
