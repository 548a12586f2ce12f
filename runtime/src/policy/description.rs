//! The description of a policy in the registry, for people and tools.
//!
//! ```text
//! 1                              the form
//! name sms.send
//! version 0.1.0                  of this library
//! key sms:{phone}                of the main subject, if it is known; `key` alone stands for all calls together
//! subject network                another subject, by its label; the first has the number 1
//! subject_key {@ip}              its key, if it is known
//! rule 0 1 per 1m as short       the number of the subject, 0 for the main one, and the rule
//! rule 1 20 per 1h
//! ban 20 10m 1h                  denials, within, duration
//! longest_pause 1h               if subjects can be paused
//! paused 1                       the number of the subject that can be paused, if it is not the main one
//! prefetch 100ms                 how long calls are taken ahead
//! plan 500 paid                  a count that a file has for calls that give one, and the name of its plan
//! plan calls=20,tokens=60000 pro the same of a plan with counts by unit
//! secret 4f1a                    the fingerprint of the secret, if a key shows a digest; `none` without a secret
//! shadow
//! ```
//!
//! In a value, `\n`, `\r` and `\\` stand for characters that would break the lines. Later versions may add lines with
//! other names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

#[cfg(any(feature = "admin", test))]
use tallygate_rules::parse_duration;
use tallygate_rules::{Ban, EffectiveRule, Filter, FilteredValue, Rule, Template, format_duration};

use super::{PlanCounts, Policy};
use crate::subject::filters::Secret;

/// The form of the text. No other form is read.
const FORM: &str = "1";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) name: String,
    /// The version of this library in the process that registered the policy.
    pub(crate) version: String,
    /// The template of the main subject, if it is known.
    pub(crate) key: Option<String>,
    /// The labels of the other subjects, with their templates.
    pub(crate) subjects: Vec<(String, Option<String>)>,
    /// The rules in their order, each with the index of its subject in `subjects`; `None` for the main one.
    pub(crate) rules: Vec<(Option<usize>, Rule)>,
    pub(crate) ban: Option<Ban>,
    /// The longest pause of a subject, if subjects can be paused.
    pub(crate) longest_pause: Option<Duration>,
    /// The index in `subjects` of the one that can be paused; `None` for the main one.
    pub(crate) paused: Option<usize>,
    /// The time for which calls are taken ahead.
    pub(crate) prefetch: Option<Duration>,
    /// The counts of plans by their names, if each call gives the count of a rule.
    pub(crate) plans: BTreeMap<String, PlanCounts>,
    /// The fingerprint of the process's secret, if it is known.
    pub(crate) secret: Option<String>,
    /// Whether calls run even if they are denied.
    pub(crate) is_shadow: bool,
}

impl Description {
    pub(crate) fn of(policy: &Policy, is_shadow: bool) -> Self {
        let template = |label| policy.templates().get(label).map(str::to_owned);
        let labels = policy.first_places().into_iter().filter_map(|(_, label)| label);
        let subjects: Vec<_> = labels.map(|label| (label.to_owned(), template(Some(label)))).collect();
        let rules = policy.effective_rules().into_iter().map(|EffectiveRule { label, rule, .. }| {
            let subject = label.and_then(|label| subjects.iter().position(|(known, _)| *known == label));
            (subject, rule)
        });
        Self {
            name: policy.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            key: template(None),
            rules: rules.collect(),
            paused: policy.paused_label().and_then(|paused| subjects.iter().position(|(label, _)| label == paused)),
            subjects,
            ban: policy.ban(),
            longest_pause: policy.longest_pause(),
            prefetch: policy.prefetch(),
            plans: BTreeMap::new(),
            secret: None,
            is_shadow,
        }
    }

    /// Adds the fingerprint of the secret, if a key shows a digest.
    pub(crate) fn with_secret(self, secret: &Secret) -> Self {
        let mut keys = self.key.iter().chain(self.subjects.iter().filter_map(|(_, key)| key.as_ref()));
        let secret = keys.any(|key| shows_digest(key)).then(|| secret.fingerprint().to_owned());
        Self { secret, ..self }
    }

    /// Adds the plans of a file, if each call gives the count of a rule.
    pub(crate) fn with_plans(self, plans: BTreeMap<String, PlanCounts>) -> Self {
        let is_open = self.rules.iter().any(|(_, rule)| rule.is_varying());
        Self { plans: if is_open { plans } else { BTreeMap::new() }, ..self }
    }

    pub(crate) fn write(&self) -> String {
        let mut text = FORM.to_owned();
        line(&mut text, "name", &self.name);
        line(&mut text, "version", &self.version);
        if let Some(key) = &self.key {
            line(&mut text, "key", key);
        }
        for (label, key) in &self.subjects {
            line(&mut text, "subject", label);
            if let Some(key) = key {
                line(&mut text, "subject_key", key);
            }
        }
        for (subject, rule) in &self.rules {
            line(&mut text, "rule", &format!("{} {rule}", subject.map_or(0, |subject| subject + 1)));
        }
        if let Some(ban) = self.ban {
            let [within, duration] = [ban.within(), ban.duration()].map(format_duration);
            line(&mut text, "ban", &format!("{} {within} {duration}", ban.denials()));
        }
        if let Some(longest) = self.longest_pause {
            line(&mut text, "longest_pause", &format_duration(longest));
        }
        if let Some(paused) = self.paused {
            line(&mut text, "paused", &(paused + 1).to_string());
        }
        if let Some(ahead) = self.prefetch {
            line(&mut text, "prefetch", &format_duration(ahead));
        }
        for (name, counts) in &self.plans {
            line(&mut text, "plan", &format!("{} {name}", counts.write()));
        }
        if let Some(secret) = &self.secret {
            line(&mut text, "secret", secret);
        }
        if self.is_shadow {
            line(&mut text, "shadow", "");
        }
        text
    }
}

fn shows_digest(key: &str) -> bool {
    let template = Template::parse(key).ok();
    let values = template.iter().flat_map(Template::values).flat_map(FilteredValue::alternatives);
    { values }.any(|value| value.filters.contains(&Filter::Hash))
}

fn line(text: &mut String, name: &str, value: &str) {
    let space = if value.is_empty() { "" } else { " " };
    let value = value.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
    // Writing to a string cannot fail.
    let _ = write!(text, "\n{name}{space}{value}");
}

#[cfg(any(feature = "admin", test))]
impl Description {
    /// # Errors
    ///
    /// Returns an error for a text of another form, or one that [`write`](Self::write) does not write.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.split('\n');
        let form = lines.next().unwrap_or_default();
        if form != FORM {
            return Err(format!("it has the form {form:?}, and this version reads the form {FORM:?}"));
        }
        let mut read = Self::default();
        lines.try_for_each(|line| read.read_line(line))?;
        read.check()
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = unescape(value).ok_or_else(|| format!("its line `{name}` has an unknown escape"))?;
        match name {
            "name" => self.name = value,
            "version" => self.version = value,
            "key" => self.key = Some(value),
            "subject" => self.subjects.push((value, None)),
            "subject_key" => {
                let (_, key) = self.subjects.last_mut().ok_or("it has a key without a subject")?;
                *key = Some(value);
            }
            "rule" => self.rules.push(rule(&value)?),
            "ban" => self.ban = Some(ban(&value).ok_or_else(|| format!("`{value}` is no ban"))?),
            "longest_pause" => {
                let longest = parse_duration(&value).map_err(|_| format!("`{value}` is no longest pause"))?;
                self.longest_pause = Some(longest);
            }
            "paused" => {
                let number: usize = value.parse().map_err(|_| format!("`{value}` is no number of a subject"))?;
                self.paused = number.checked_sub(1);
            }
            "prefetch" => {
                let ahead = parse_duration(&value).map_err(|_| format!("`{value}` is no time to take calls ahead"))?;
                self.prefetch = Some(ahead);
            }
            "plan" => {
                let counts_and_name = value.split_once(' ');
                let plan = counts_and_name.and_then(|(counts, name)| Some((name, PlanCounts::read(counts)?)));
                let (name, counts) = plan.ok_or_else(|| format!("`{value}` is no plan"))?;
                self.plans.insert(name.to_owned(), counts);
            }
            "secret" => self.secret = Some(value),
            "shadow" => self.is_shadow = true,
            _ => {}
        }
        Ok(())
    }

    fn check(self) -> Result<Self, String> {
        if self.name.is_empty() {
            return Err("it has no name".to_owned());
        }
        let is_missing = |subject: Option<usize>| subject.is_some_and(|subject| subject >= self.subjects.len());
        if self.rules.iter().any(|(subject, _)| is_missing(*subject)) {
            return Err("it has a rule on a subject that it does not have".to_owned());
        }
        if is_missing(self.paused) {
            return Err("it pauses a subject that it does not have".to_owned());
        }
        Ok(self)
    }
}

#[cfg(any(feature = "admin", test))]
fn rule(text: &str) -> Result<(Option<usize>, Rule), String> {
    let (subject, rule) = text.split_once(' ').unwrap_or((text, ""));
    let subject: usize = subject.parse().map_err(|_| format!("`{text}` is no rule of a subject"))?;
    let rule = rule.parse().map_err(|mistake: tallygate_rules::ParseRuleError| mistake.to_string())?;
    Ok((subject.checked_sub(1), rule))
}

#[cfg(any(feature = "admin", test))]
fn ban(text: &str) -> Option<Ban> {
    let mut parts = text.split(' ');
    let denials = parts.next()?.parse().ok()?;
    let mut duration = || parse_duration(parts.next()?).ok();
    let (within, duration) = (duration()?, duration()?);
    parts.next().is_none().then_some(Ban::new(denials, within, duration))
}

/// Reverses the escapes of `line`; `None` if there is an unknown one.
#[cfg(any(feature = "admin", test))]
fn unescape(text: &str) -> Option<String> {
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_policy_is_described_with_everything_but_its_subjects() {
        let policy = Policy::builder("sms.send")
            .rule_on("network", Rule::sliding_window(20, HOUR))
            .rule(Rule::sliding_window(1, HOUR / 60).named("short"))
            .key("sms:{phone}")
            .key_on("network", "{@ip}")
            .ban(Ban::new(20, HOUR / 6, HOUR))
            .build()
            .unwrap();
        let text = Description::of(&policy, true).write();
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "1\nname sms.send\nversion {version}\nkey sms:{{phone}}\nsubject network\nsubject_key {{@ip}}\n\
             rule 1 20 per 1h\nrule 0 1 per 1m as short\nban 20 10m 1h\nshadow"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_written_is_read_back_whatever_is_in_it() {
        let odd = "a\nrule 0 1 per 1h\\n\r é";
        let policy = Policy::builder(odd)
            .rule(Rule::sliding_window(1, HOUR).named(odd).varying())
            .rule_on(odd, Rule::token_bucket(2, HOUR))
            .rule_on("plain", Rule::duplicate(HOUR))
            .key("")
            .key_on(odd, odd)
            .build()
            .unwrap();
        let ahead = Policy::builder("p").rule(Rule::sliding_window(100, HOUR)).prefetch(HOUR / 7_200).build().unwrap();
        let paused = Policy::builder("p").rule_on(odd, Rule::duplicate(HOUR)).pausable_on(odd).build().unwrap();
        assert_eq!(Description::of(&paused, false).paused, Some(0));
        let hashed = Policy::builder("p").rule(Rule::duplicate(HOUR)).key("{a}/{@b:hash|@c}").build().unwrap();
        let described = Description::of(&hashed, false).with_secret(&Secret::new(b"one"));
        assert_eq!(described.secret, Some(Secret::new(b"one").fingerprint().to_owned()));
        assert_eq!(Description::read(&described.write()), Ok(described));
        let by_unit = PlanCounts::ByUnit([("calls".to_owned(), 20), ("tokens".to_owned(), 60_000)].into());
        let plans = [("paid in advance", PlanCounts::One(0)), (odd, PlanCounts::One(u64::MAX)), ("pro", by_unit)];
        let plans = BTreeMap::from(plans.map(|(name, counts)| (name.to_owned(), counts)));
        for (policy, number) in [(policy, 3), (ahead, 0), (paused, 0)] {
            let described = Description::of(&policy, false).with_secret(&Secret::public()).with_plans(plans.clone());
            assert_eq!(described.plans.len(), number, "only where calls give a count");
            assert_eq!(described.secret, None);
            assert_eq!(Description::read(&described.write()), Ok(described));
        }
    }

    #[test]
    fn what_is_not_of_this_form_is_refused() {
        for (text, why) in [
            ("", "it has the form \"\""),
            ("2\nname p\nrule 0 1 per 1h", "it has the form \"2\", and this version reads the form \"1\""),
            ("{\"name\":\"p\"}", "it has the form"),
            ("1\nrule 0 1 per 1h", "it has no name"),
            ("1\nname p\nrule 1 per 1h", "`per 1h`"),
            ("1\nname p\nrule x 1 per 1h", "`x 1 per 1h` is no rule"),
            ("1\nname p\nrule 1 1 per 1h", "a subject that it does not have"),
            ("1\nname p\npaused x", "`x` is no number of a subject"),
            ("1\nname p\npaused 1", "it pauses a subject that it does not have"),
            ("1\nname p\nsubject_key {a}", "a key without a subject"),
            ("1\nname p\nban 20 10m", "`20 10m` is no ban"),
            ("1\nname p\nplan free 100", "`free 100` is no plan"),
            ("1\nname p\nplan calls=1,tokens= free", "`calls=1,tokens= free` is no plan"),
            ("1\nname p\nplan calls=1,Tokens=1 free", "`calls=1,Tokens=1 free` is no plan"),
            ("1\nname p\nprefetch soon", "`soon` is no time to take calls ahead"),
            ("1\nname \\p", "its line `name` has an unknown escape"),
        ] {
            let refused = Description::read(text).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
    }

    #[test]
    fn lines_that_a_later_version_adds_are_left_out() {
        let read = Description::read("1\nname p\nowner shop\nrule 0 1 per 1h").unwrap();
        assert_eq!((read.name.as_str(), read.rules.len(), read.key), ("p", 1, None));
    }
}
