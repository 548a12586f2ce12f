//! A whole subject as an operator writes it: its values pass the filters of its key, as those of calls do.

use tallygate_rules::{Filter, FilteredValue, TemplatePart, is_plain};

use super::rendering::Rendering;
use super::template::{self, KeyTemplate, Placeholder};
use crate::error::Error;
use crate::subject::{Subject, SubjectBuilder, SubjectValue, percent_decode};

/// Stands before the digest of a shortened subject.
const DIGEST_MARK: char = '!';

/// The digits of a digest.
const DIGEST_DIGITS: usize = 32;

/// A value of a subject: how its key shows it, and its text.
type ShownValue<'t> = (&'t FilteredValue, String);

impl Rendering<'_> {
    /// Reads a whole subject of that label, or the main one.
    pub(super) fn read_written(&self, label: Option<&str>, text: &str) -> Result<Subject, Error> {
        let (policy, subject) = (self.policy(), Subject::from_rendered(text)?);
        policy.check_subject(label, &subject)?;
        let Some(key) = policy.key_of(label) else { return Ok(subject) };
        let template = KeyTemplate::read(policy.name(), key)?;
        // If the subject is shortened, its values are not known.
        let Some(values) = template.values_in(text) else { return Ok(subject) };
        let to_hash = |(shown, value): &&ShownValue<'_>| shown.filters.contains(&Filter::Hash) && !is_digest(value);
        let hashed: Vec<_> = values.iter().filter(to_hash).map(|(shown, _)| *shown).collect();
        self.check_text(hashed.iter().copied().find(|shown| is_debugged(shown)).map(|shown| &*shown.name))?;
        self.check_secret(hashed.iter().map(|shown| Placeholder::hashed(&shown.name)).collect::<Vec<_>>().iter())?;
        let is_sound = |(shown, value): &ShownValue<'_>| {
            template::may_be_client_address(shown, value) || template::is_whole_client_address(shown, value)
        };
        if !values.iter().all(is_sound) {
            return Err(self.wrong_address());
        }
        Ok(template.filtered(self.limiter().subject(), values))
    }
}

impl KeyTemplate {
    /// Returns whether the template may render to this subject: the text of the template stands around escaped values. Only
    /// the start of a shortened subject is compared.
    pub(super) fn fits(&self, subject: &str) -> bool {
        match subject.split_once(DIGEST_MARK) {
            Some((start, _)) => self.search(start, true).is_some(),
            None => self.search(subject, false).is_some(),
        }
    }

    /// Returns the values of a subject of this template, in their order; `None` if it has another form, or is shortened.
    fn values_in(&self, subject: &str) -> Option<Vec<ShownValue<'_>>> {
        let mut found = self.search(subject, false)?;
        found.reverse();
        found.into_iter().map(|(shown, text)| Some((shown, percent_decode(text)?))).collect()
    }

    /// Returns the values of a subject that begins like this, the last one first. What was cut off may be anything.
    fn search<'s>(&self, subject: &'s str, is_cut: bool) -> Option<Vec<(&FilteredValue, &'s str)>> {
        let dead_ends = vec![false; (self.parts().len() + 1) * (subject.len() + 1)];
        ValueSearch { parts: self.parts(), subject, is_cut, dead_ends }.values(0, 0)
    }

    /// Returns the subject with these values, which pass the filters.
    fn filtered(&self, builder: SubjectBuilder<'_>, values: Vec<ShownValue<'_>>) -> Subject {
        let mut values = values.into_iter();
        let mut built = builder;
        for part in self.parts() {
            built = match part {
                TemplatePart::Text(text) => built.text(text),
                TemplatePart::Value(value) => {
                    let Some((shown, text)) = values.next() else { continue };
                    let tag = if value.has_alternatives() { shown.tag() } else { String::new() };
                    let is_done = is_debugged(shown) || shown.filters.contains(&Filter::Hash) && is_digest(&text);
                    let filters = shown.filters.iter().copied().filter(|_| !is_done);
                    filters.fold(built.text(&tag).value(text), SubjectValue::filtered).text("")
                }
            };
        }
        built.build()
    }
}

struct ValueSearch<'t, 's> {
    parts: &'t [TemplatePart],
    subject: &'s str,
    /// Whether only the start of the subject is known.
    is_cut: bool,
    /// The pairs of a part and a place from which nothing fits. So each pair is searched only once.
    dead_ends: Vec<bool>,
}

impl<'t, 's> ValueSearch<'t, 's> {
    /// Returns the values from this part and this place on, the last one first.
    fn values(&mut self, part: usize, at: usize) -> Option<Vec<(&'t FilteredValue, &'s str)>> {
        let place = part * (self.subject.len() + 1) + at;
        if self.dead_ends.get(place).is_none_or(|is_dead| *is_dead) {
            return None;
        }
        let found = self.search(part, at);
        if let (None, Some(is_dead)) = (&found, self.dead_ends.get_mut(place)) {
            *is_dead = true;
        }
        found
    }

    fn search(&mut self, part: usize, at: usize) -> Option<Vec<(&'t FilteredValue, &'s str)>> {
        let subject = self.subject;
        let rest = subject.get(at..)?;
        match self.parts.get(part) {
            None => rest.is_empty().then(Vec::new),
            Some(_) if self.is_cut && rest.is_empty() => Some(Vec::new()),
            Some(TemplatePart::Text(text)) => {
                let text = template::escaped(text);
                if self.is_cut && text.starts_with(rest) {
                    return Some(Vec::new());
                }
                rest.starts_with(&text).then(|| self.values(part + 1, at + text.len())).flatten()
            }
            Some(TemplatePart::Value(value)) => {
                let (shown, behind) = template::tagged(value, rest)?;
                let start = at + rest.len() - behind.len();
                let longest = behind.bytes().take_while(|&byte| is_plain(byte) || byte == b'%').count();
                (0..=longest).rev().find_map(|length| {
                    let mut values = self.values(part + 1, start + length)?;
                    values.push((shown, subject.get(start..start + length)?));
                    Some(values)
                })
            }
        }
    }
}

/// Whether only the program knows how the value is written.
fn is_debugged(shown: &FilteredValue) -> bool {
    shown.filters.contains(&Filter::Debug) && !shown.name.starts_with('@')
}

/// Whether a value is a digest, as lists print it.
fn is_digest(value: &str) -> bool {
    value.len() == DIGEST_DIGITS && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::Limiter;

    /// Reads a subject of that key as it is written, and returns its text.
    fn read(key: &str, written: &str) -> Option<String> {
        let (template, limiter) = (KeyTemplate::read("p", key).unwrap(), Limiter::in_memory());
        Some(template.filtered(limiter.subject(), template.values_in(written)?).to_string())
    }

    #[test]
    fn the_values_of_a_written_subject_pass_the_filters_of_its_key() {
        let digest = "0677a9289e8763cdefcc573d1fb7fbf3";
        for (key, written, read_as) in [
            ("user:{name:lower}", "user:ZOE", "user:zoe"),
            ("{name:trim:lower}", "%20Zo%C3%AB%20", "zo%C3%AB"),
            ("{ip:subnet}/x", "192.0.2.7/x", "192.0.2.7/x"),
            ("sms:{phone:hash}", "sms:13800000000", &format!("sms:{digest}")),
            ("sms:{phone:hash}", &format!("sms:{digest}"), &format!("sms:{digest}")),
            ("{@user:lower|@ip}/a", "user:ZOE/a", "user:zoe/a"),
            ("{a}x:{b:lower}", "xxx:B", "xxx:b"),
            ("{form:debug}", "%22A%22", "%22A%22"),
        ] {
            assert_eq!(read(key, written).as_deref(), Some(read_as), "{key}");
        }
        assert_eq!(read("sms:{phone}", "sms:1!0123456789abcdef0123456789abcdef"), None);
    }

    #[test]
    fn a_key_of_many_values_is_searched_in_few_steps() {
        let placeholders: Vec<_> = (0..150).map(|number| format!("{{v{number}}}")).collect();
        assert_eq!(read(&format!("{}:x", placeholders.concat()), &"a".repeat(60)), None);
    }

    #[test]
    fn a_subject_fits_a_key_if_its_text_stands_around_escaped_values() {
        let fits = |key: &str, subject: &str| KeyTemplate::read("p", key).unwrap().fits(subject);
        for subject in ["sms:138", "sms:", "sms:zo%C3%AB", "sms:13!0123456789abcdef0123456789abcdef"] {
            assert!(fits("sms:{phone}", subject), "{subject}");
        }
        for subject in ["138", "sms:1:2", "not a subject", "mail:138", "sms", ""] {
            assert!(!fits("sms:{phone}", subject), "{subject}");
        }
        assert!(fits("{a}:{b}/é", "x:y/%C3%A9") && !fits("{a}:{b}", "x") && !fits("{a}:{b}", "x:y:z"));
        assert!(fits("{@user|@ip}/x", "user:zoe/x") && fits("{@user|@ip}/x", "ip:192.0.2.1/x"));
        assert!(!fits("{@user|@ip}/x", "zoe/x") && !fits("{@user|@ip}/x", "user:zoe"));
        assert!(fits("all calls", "all calls") && !fits("all calls", "all") && fits("", ""));
    }

    #[test]
    fn a_key_of_many_values_is_compared_in_few_steps() {
        let key = (0..200).fold(String::new(), |key, number| key + &format!("{{v{number}}}"));
        let template = KeyTemplate::read("p", &format!("{key}:x")).unwrap();
        let subject = "a".repeat(98);
        assert!(!template.fits(&subject) && template.fits(&format!("{subject}:x")));
        let alternatives = "{@a|@aa}".repeat(200);
        let template = KeyTemplate::read("p", &format!("{alternatives}x")).unwrap();
        assert!(!template.fits(&"a:aa:".repeat(20)));
    }
}
