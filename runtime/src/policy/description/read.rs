//! Reading a description.
#![cfg(any(feature = "admin", test))]

use tallygate_rules::{Ban, Rule, parse_duration};

use super::{Description, FORM};

impl Description {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// It has another form, or is none of [`write`](Self::write).
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
            "prefetch" => {
                let ahead = parse_duration(&value).map_err(|_| format!("`{value}` is no time to take calls ahead"))?;
                self.prefetch = Some(ahead);
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
        if self.rules.iter().any(|(subject, _)| subject.is_some_and(|subject| subject >= self.subjects.len())) {
            return Err("it has a rule on a subject that it does not have".to_owned());
        }
        Ok(self)
    }
}

fn rule(text: &str) -> Result<(Option<usize>, Rule), String> {
    let (subject, rule) = text.split_once(' ').unwrap_or((text, ""));
    let subject: usize = subject.parse().map_err(|_| format!("`{text}` is no rule of a subject"))?;
    let rule = rule.parse().map_err(|mistake: tallygate_rules::ParseRuleError| mistake.to_string())?;
    Ok((subject.checked_sub(1), rule))
}

fn ban(text: &str) -> Option<Ban> {
    let mut parts = text.split(' ');
    let denials = parts.next()?.parse().ok()?;
    let mut duration = || parse_duration(parts.next()?).ok();
    let (within, duration) = (duration()?, duration()?);
    parts.next().is_none().then_some(Ban::new(denials, within, duration))
}

/// Takes back what stands for line ends; `None` if it was never written so.
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
            ("1\nname p\nsubject_key {a}", "a key without a subject"),
            ("1\nname p\nban 20 10m", "`20 10m` is no ban"),
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
