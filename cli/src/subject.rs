//! The subjects of a command, as its arguments give them.

use std::fmt::Display;

use clap::Args;
use tallygate::admin::__shared::OpenPolicy;
use tallygate::admin::{RegisteredPolicy, Rendering, Subjects};
use tallygate::{Error, Subject};

use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live;

/// Who is meant.
#[derive(Args, Debug)]
pub(crate) struct Who {
    #[command(flatten)]
    pub(crate) main: Main,

    /// The whole subject of rules with a key of their own, by their label
    #[arg(long, value_name = "LABEL=SUBJECT", value_parser = labelled, add = live::labels_with_subject())]
    on: Vec<(String, String)>,
}

/// Who is meant, as far as it is one subject: the main one, unless the command is about another.
#[derive(Args, Debug)]
pub(crate) struct Main {
    /// The values that the key of the policy shows, in their order: 13800000000 for `sms:{phone}`
    #[arg(value_name = "VALUE")]
    values: Vec<String>,

    /// The whole subject, as `top` prints it, in place of the values: sms:13800000000
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
}

/// Somebody under a policy.
#[derive(Args, Debug)]
pub(crate) struct MainTarget {
    /// The name of the policy
    #[arg(add = live::policies())]
    pub(crate) policy: String,

    #[command(flatten)]
    pub(crate) who: Main,
}

/// Returns a subject as people read it.
pub(crate) fn name(subject: &str) -> &str {
    if subject.is_empty() { "everyone" } else { subject }
}

/// Returns the label and the subject of an override: ` on network for sms:13800000000`.
pub(crate) fn place(label: Option<&str>, subject: Option<impl Display>) -> String {
    let label = label.map(|label| format!(" on {label}")).unwrap_or_default();
    let subject = subject.map(|subject| format!(" for {subject}")).unwrap_or_default();
    format!("{label}{subject}")
}

/// Returns the shell words that name the main subject of a call: its value alone where that is enough.
pub(crate) fn words(fleet: &Fleet<'_>, listed: &OpenPolicy<'_>, subject: &Subject) -> String {
    let text = subject.to_string();
    let values =
        Main { values: Some(text.clone()).filter(|text| !text.is_empty()).into_iter().collect(), subject: None };
    let is_enough = values.subjects(fleet, listed, None).is_ok_and(|named| named.main() == subject);
    if is_enough && !text.starts_with('-') { quoted(&text) } else { format!("--subject={}", quoted(&text)) }
}

/// Returns the shell words that name a policy and a subject. `who` comes from [`words`].
pub(crate) fn target(policy: &str, who: &str) -> String {
    let word = quoted(policy);
    // Behind `--`, no word is an option.
    let target = match (policy.starts_with('-'), who.starts_with('-')) {
        (false, _) => format!("{word} {who}"),
        (true, true) => format!("{who} -- {word}"),
        (true, false) => format!("-- {word} {who}"),
    };
    target.trim_end().to_owned()
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    match shlex::try_quote(word) {
        _ if word.is_empty() => String::new(),
        Ok(quoted) => quoted.into_owned(),
        // Only a NUL cannot be quoted, and no key has one.
        Err(_) => word.to_owned(),
    }
}

impl Who {
    /// Returns all subjects of a call of that policy.
    pub(crate) fn subjects(&self, fleet: &Fleet<'_>, listed: &OpenPolicy<'_>) -> Result<Subjects, Failure> {
        build(self.rendering(fleet, listed)?, fleet, listed.described, Rendering::build)
    }

    /// Returns the subjects of a call of that policy as far as they are given, and the labels of the others.
    pub(crate) fn subjects_partly(
        &self,
        fleet: &Fleet<'_>,
        listed: &OpenPolicy<'_>,
    ) -> Result<(Subjects, Vec<Option<String>>), Failure> {
        build(self.rendering(fleet, listed)?, fleet, listed.described, Rendering::build_partly)
    }

    fn rendering<'a>(&self, fleet: &'a Fleet<'_>, listed: &OpenPolicy<'a>) -> Result<Rendering<'a>, Failure> {
        let mut rendering = self.main.rendering(fleet, listed, None)?;
        for (label, text) in &self.on {
            rendering = rendering.written_subject(label, text);
        }
        Ok(rendering)
    }

    /// Whether another subject than the main one is given.
    pub(crate) fn has_others(&self) -> bool {
        !self.on.is_empty()
    }
}

impl Main {
    /// Returns the main subject of a call of that policy, or the one of that label, if the arguments are about it. The other
    /// subjects are placeholders, which no call counts.
    pub(crate) fn subjects(
        &self,
        fleet: &Fleet<'_>,
        listed: &OpenPolicy<'_>,
        label: Option<&str>,
    ) -> Result<Subjects, Failure> {
        build(self.rendering(fleet, listed, label)?.only(label), fleet, listed.described, Rendering::build)
    }

    fn rendering<'a>(
        &self,
        fleet: &'a Fleet<'_>,
        listed: &OpenPolicy<'a>,
        label: Option<&str>,
    ) -> Result<Rendering<'a>, Failure> {
        let described = listed.described;
        let rendering = described.render(&fleet.limiter);
        let is_known = match label {
            None => described.key().is_some() || !described.has_main_subject(),
            Some(label) => described.subjects().any(|subject| subject.label() == label && subject.key().is_some()),
        };
        match (&self.subject, &self.values[..]) {
            (Some(_), [_, ..]) => Err(Failure::usage("`--subject` says the whole subject; leave the values out")),
            (Some(text), []) => Ok(written(rendering, label, text)),
            // The key is not known, so the word can only be the whole subject.
            (None, [text]) if !is_known => {
                let whole = Subject::from_rendered(text)?;
                Ok(match label {
                    None => rendering.main(whole),
                    Some(label) => rendering.subject(label, whole),
                })
            }
            (None, [text]) => Ok(match described.read_subject(label, text) {
                // The word is a whole subject, as `top` prints it.
                Some(_) => written(rendering, label, text),
                None => rendering.value(text),
            }),
            (None, values) => Ok(rendering.values(values)),
        }
    }
}

/// Gives a whole subject of that label, or the main one without a label.
fn written<'a>(rendering: Rendering<'a>, label: Option<&str>, text: &str) -> Rendering<'a> {
    match label {
        None => rendering.written_main(text),
        Some(label) => rendering.written_subject(label, text),
    }
}

/// Reads a whole subject of that label, or the main one without a label.
pub(crate) fn whole(
    fleet: &Fleet<'_>,
    described: &RegisteredPolicy,
    label: Option<&str>,
    text: &str,
) -> Result<Subject, Failure> {
    let rendering = written(described.render(&fleet.limiter).only(label), label, text);
    let subjects = build(rendering, fleet, described, Rendering::build)?;
    Ok(subjects.subject(label).unwrap_or(subjects.main()).clone())
}

/// Makes the subjects. Fails if the secret is missing, or if there is one in spite of `--no-secret`.
fn build<'a, T>(
    rendering: Rendering<'a>,
    fleet: &Fleet<'_>,
    described: &RegisteredPolicy,
    make: impl Fn(Rendering<'a>) -> Result<T, Error>,
) -> Result<T, Failure> {
    let built = make(rendering.clone());
    if fleet.connection.no_secret {
        // Without the secret of the programs, it would be another subject, which no call has.
        let is_all = || make(rendering.clone().without_secret()).is_ok();
        if built.is_err() && described.has_secret() == Some(true) && is_all() {
            return Err(Failure::usage(format!(
                "the programs have a secret for the digests of `{}`; name its file by `--secret-file` in place of `--no-secret`",
                described.name()
            )));
        }
        return Ok(make(rendering.without_secret())?);
    }
    // It could be built without a secret, so only the secret is missing.
    if built.is_err() && fleet.connection.secret_file.is_none() && make(rendering.without_secret()).is_ok() {
        return Err(Failure::usage(format!(
            "the key of `{}` shows digests; name the file with the secret of the programs by `--secret-file`, or write \
             `--no-secret` if they have none",
            described.name()
        )));
    }
    Ok(built?)
}

/// Reads `label=subject`.
fn labelled(text: &str) -> Result<(String, String), String> {
    // A label may be a key with an equals sign in it. A subject has no brace before one.
    let (label, subject) = text.rsplit_once("}=").map(|(label, subject)| (format!("{label}}}"), subject)).unzip();
    let plain = || text.split_once('=').map(|(label, subject)| (label.to_owned(), subject.to_owned()));
    let read = label.zip(subject.map(str::to_owned)).or_else(plain);
    read.ok_or_else(|| "write the label, an equals sign and the subject, like {ip}=192.0.2.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_change_stands_in_quotes() {
        let words = ["sms:138", "2001:db8::/64", "$HOME", "a b", ""].map(quoted);
        assert_eq!(words, ["sms:138", "2001:db8::/64", "'$HOME'", "'a b'", ""]);
    }

    #[test]
    fn no_name_is_taken_for_an_option() {
        let targets =
            [("sms", "138"), ("sms", ""), ("sms", "--subject=-1"), ("-rf", "138"), ("--url=x", "--subject='a b'")]
                .map(|(policy, who)| target(policy, who));
        assert_eq!(targets, ["sms 138", "sms", "sms --subject=-1", "-- -rf 138", "--subject='a b' -- '--url=x'"]);
    }

    #[test]
    fn a_label_may_be_a_key() {
        let read = |text| labelled(text).unwrap();
        assert_eq!(read("network=10.0.0.0"), ("network".to_owned(), "10.0.0.0".to_owned()));
        assert_eq!(read("a={ip}=b=c"), ("a={ip}".to_owned(), "b=c".to_owned()));
        assert!(labelled("network").is_err());
    }
}
