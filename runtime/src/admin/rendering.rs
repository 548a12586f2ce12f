//! Makes the subjects of a call from values.

mod mistakes;

use super::registered_policy::RegisteredPolicy;
use super::template::{self, KeyTemplate, Placeholder, Subjects};
use crate::error::Error;
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
    main: Option<WholeSubject>,
    others: Vec<(String, WholeSubject)>,
    /// The labels of the subjects that are not made, `None` for the main one.
    left_out: Vec<Option<String>>,
    is_hashed_without_secret: bool,
}

#[derive(Clone)]
enum WholeSubject {
    AsItIs(Subject),
    /// A text as an operator writes it: the filters of the key are applied to its values.
    Written(String),
}

/// A subject that is not made, by its label, or `None` for the main one.
type Missing = (Option<String>, Lack);

/// Why a subject is not made.
enum Lack {
    /// These placeholders have no value.
    Values(Vec<String>),
    /// Only the program knows how `Debug` writes the value of this name.
    Debugged(String),
    /// The key is not known.
    Key,
}

/// The key of a subject, with its label, or `None` for the main one.
type LabelledTemplate<'p> = (Option<&'p str>, KeyTemplate);

/// A placeholder and the value that was given for it.
type Given<'r> = (&'r str, &'r str);

impl Lack {
    /// Returns why a subject cannot be made by that key, given which placeholders have values.
    fn of(template: &KeyTemplate, is_given: impl Fn(&str) -> bool) -> Option<Self> {
        if let Some(name) = template.debugged() {
            return Some(Self::Debugged(name.to_owned()));
        }
        let names: Vec<_> = template.names().filter(|name| !is_given(name)).map(str::to_owned).collect();
        (!names.is_empty()).then_some(Self::Values(names))
    }
}

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
            left_out: Vec::new(),
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
        self.main = Some(WholeSubject::AsItIs(subject));
        self
    }

    /// Gives the subject of that label as a whole.
    pub fn subject(mut self, label: impl Into<String>, subject: Subject) -> Self {
        self.others.push((label.into(), WholeSubject::AsItIs(subject)));
        self
    }

    /// Gives the main subject as a whole, as a person writes it: `user:Zoe` for the key `user:{name:lower}`. Its values pass the
    /// filters of the key, as those of calls do. A digest stays as it is.
    pub fn written_main(mut self, text: impl Into<String>) -> Self {
        self.main = Some(WholeSubject::Written(text.into()));
        self
    }

    /// Gives the subject of that label as a whole, as a person writes it: see [`written_main`](Self::written_main).
    pub fn written_subject(mut self, label: impl Into<String>, text: impl Into<String>) -> Self {
        self.others.push((label.into(), WholeSubject::Written(text.into())));
        self
    }

    /// Makes the subject of that label alone, or the main one without a label. [Everyone](Subject::everyone) stands in place
    /// of the others, so neither they nor their values are taken.
    pub fn only(mut self, label: Option<&str>) -> Self {
        let labels = self.policy.subjects().map(|subject| Some(subject.label()));
        let others = [None].into_iter().chain(labels).filter(|other| *other != label);
        self.left_out = others.map(|other| other.map(str::to_owned)).collect();
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
    /// * A subject is given twice, or is not the [only](Self::only) one to make.
    /// * The key of a subject is not known, or shows a value by `Debug`, and the subject was not given as a whole.
    /// * A subject that was written as a whole fits no key.
    /// * The main subject was given as a whole, and no rule counts it.
    /// * A key needs the secret of the processes, which the limiter does not have: it has none, or the policy is listed with another.
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
    /// The values or the subjects are wrong, as for [`build`](Self::build), or no subject can be made from them.
    pub fn build_partly(self) -> Result<(Subjects, Vec<Option<String>>), Error> {
        let (subjects, missing) = self.build_given()?;
        let all = usize::from(self.policy.has_main_subject()) + self.policy.subjects().count();
        if missing.len() == all && !missing.is_empty() {
            return Err(self.missing(&missing));
        }
        Ok((subjects, missing.into_iter().map(|(label, _)| label).collect()))
    }

    fn build_given(&self) -> Result<(Subjects, Vec<Missing>), Error> {
        self.check_labels()?;
        let (templates, mut missing) = self.templates()?;
        self.check_main()?;
        self.check_values_have_keys(templates.is_empty(), &missing)?;
        let placeholders = template::placeholders(templates.iter().map(|(_, template)| template));
        let given = self.given(&placeholders)?;
        let is_given = |name: &str| given.iter().any(|(known, _)| *known == name);
        let value = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        if !templates.iter().all(|(_, template)| template.has_sound_addresses(value)) {
            return Err(self.wrong_address());
        }
        self.check_tags(templates.iter().find_map(|(_, template)| template.untagged(value)))?;
        let lack = |template: &KeyTemplate| Lack::of(template, is_given);
        let is_made = |template: &KeyTemplate| lack(template).is_none();
        let made = templates.iter().filter(|(_, template)| is_made(template)).map(|(_, template)| template);
        self.check_secret(template::placeholders(made).iter())?;
        self.check_use(&templates, is_given)?;
        let lacking =
            templates.iter().filter_map(|(label, template)| Some((label.map(str::to_owned), lack(template)?)));
        missing.extend(lacking);
        let subject = |label: Option<&str>| {
            if let Some(whole) = self.whole(label) {
                return self.read_whole(label, whole);
            }
            let template = templates.iter().find(|(known, template)| *known == label && is_made(template));
            let render = |template: &KeyTemplate| {
                template.subject(self.limiter.subject(), |name| value(name).unwrap_or_default())
            };
            Ok(template.map_or_else(Subject::everyone, |(_, template)| render(template)))
        };
        let labels = self.policy.subjects().map(|subject| subject.label());
        let others = labels.map(|label| Ok((label.to_owned(), subject(Some(label))?))).collect::<Result<_, Error>>()?;
        Ok((Subjects { main: subject(None)?, others }, missing))
    }

    /// Refuses a value that is of no use: each key that shows it also shows a value by `Debug`.
    fn check_use(&self, templates: &[LabelledTemplate<'_>], is_given: impl Fn(&str) -> bool) -> Result<(), Error> {
        let shows = |template: &KeyTemplate, name: &str| template.names().any(|known| known == name);
        let is_of_use =
            |name: &str| templates.iter().any(|(_, template)| template.debugged().is_none() && shows(template, name));
        let is_in_vain = |template: &KeyTemplate| template.names().any(|name| is_given(name) && !is_of_use(name));
        let mut in_vain = templates.iter().filter(|(_, template)| is_in_vain(template));
        self.check_text(in_vain.find_map(|(_, template)| template.debugged()))
    }

    /// Reads the keys of the subjects that are made from values. Also returns the subjects whose keys are not known.
    fn templates(&self) -> Result<(Vec<LabelledTemplate<'_>>, Vec<Missing>), Error> {
        let is_of_values = |label: Option<&str>| self.whole(label).is_none() && !self.is_left_out(label);
        let main = self.policy.has_main_subject().then(|| (None, self.policy.key()));
        let others = self.policy.subjects().map(|subject| (Some(subject.label()), subject.key()));
        let (mut templates, mut missing) = (Vec::new(), Vec::new());
        for (label, key) in main.into_iter().chain(others).filter(|(label, _)| is_of_values(*label)) {
            match key {
                Some(key) => templates.push((label, KeyTemplate::read(self.policy.name(), key)?)),
                None => missing.push((label.map(str::to_owned), Lack::Key)),
            }
        }
        Ok((templates, missing))
    }

    /// Returns each placeholder with its value, if it has one.
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

    fn whole(&self, label: Option<&str>) -> Option<&WholeSubject> {
        match label {
            None => self.main.as_ref(),
            Some(label) => self.others.iter().find(|(known, _)| known == label).map(|(_, subject)| subject),
        }
    }

    fn read_whole(&self, label: Option<&str>, whole: &WholeSubject) -> Result<Subject, Error> {
        match whole {
            WholeSubject::AsItIs(subject) => Ok(subject.clone()),
            WholeSubject::Written(text) => self.read_written(label, text),
        }
    }

    pub(super) fn policy(&self) -> &RegisteredPolicy {
        self.policy
    }

    pub(super) fn limiter(&self) -> &Limiter {
        self.limiter
    }

    fn is_left_out(&self, label: Option<&str>) -> bool {
        self.left_out.iter().any(|left_out| left_out.as_deref() == label)
    }
}

// Leaves out the values, which may be personal.
opaque_debug!(Rendering<'_>, rendering => { policy: rendering.policy.name() });
