//! Words that a shell completes with what the server knows: names of policies, labels, rules and plans.
//!
//! Errors are not shown while somebody types: then there is nothing to choose from.

use std::collections::BTreeSet;
use std::env;
use std::iter;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use tallygate::Rule;
use tallygate::admin::{Registered, RegisteredPolicy};
use tokio::runtime;
use tokio::time::timeout;

use crate::connection::Connection;

/// The environment variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "TALLYGATE_COMPLETE";

/// How long a shell waits for the server.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn policies() -> ArgValueCandidates {
    candidates(|policy| vec![policy.name().to_owned()])
}

pub(crate) fn labels() -> ArgValueCandidates {
    candidates_of_meant(labels_of)
}

/// Completes labels, with the `=` before a subject.
pub(crate) fn labels_with_subject() -> ArgValueCandidates {
    candidates_of_meant(|policy| labels_of(policy).into_iter().map(|label| label + "=").collect())
}

pub(crate) fn rules() -> ArgValueCandidates {
    candidates_of_meant(|policy| policy.rules().iter().filter_map(Rule::name).map(str::to_owned).collect())
}

/// Completes plans. Where each call gives the counts of several rules, also behind the name or the unit of each.
pub(crate) fn plans() -> ArgValueCandidates {
    candidates_of_meant(|policy| {
        let varying: Vec<_> = policy.rules().iter().filter(|rule| rule.is_varying()).collect();
        let rules = varying.iter().filter(|_| varying.len() > 1).map(|rule| rule.name().unwrap_or(rule.counted()));
        let before = iter::once(String::new()).chain(rules.map(|rule| format!("{rule}=")));
        before.flat_map(|before| policy.plans().map(move |(plan, _)| format!("{before}{plan}"))).collect()
    })
}

/// Completes units, with the `=` before a cost.
pub(crate) fn units() -> ArgValueCandidates {
    candidates_of_meant(|policy| policy.rules().iter().filter_map(Rule::unit).map(|unit| format!("{unit}=")).collect())
}

fn labels_of(policy: &RegisteredPolicy) -> Vec<String> {
    policy.subjects().map(|subject| subject.label().to_owned()).collect()
}

/// Returns candidates from the policy that was typed before, or from all policies if none was.
fn candidates_of_meant(words: fn(&RegisteredPolicy) -> Vec<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        let (registered, typed) = (registered().unwrap_or_default(), typed());
        let meant = registered.iter().find(|policy| typed.iter().any(|word| word == policy.name()));
        let policies = meant.map_or(&registered[..], std::slice::from_ref);
        offered(policies, words)
    })
}

fn candidates(words: fn(&RegisteredPolicy) -> Vec<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || offered(&registered().unwrap_or_default(), words))
}

fn offered(policies: &[RegisteredPolicy], words: fn(&RegisteredPolicy) -> Vec<String>) -> Vec<CompletionCandidate> {
    let words: BTreeSet<_> = policies.iter().flat_map(words).filter(|word| is_left_alone(word)).collect();
    words.into_iter().map(CompletionCandidate::new).collect()
}

/// The longest word that is offered, in bytes.
const LONGEST: usize = 256;

/// Whether every shell takes the word literally. A shell would run parts of other words, which anybody who may write to
/// the server could choose, so these are not offered.
fn is_left_alone(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-.:/@+={}".contains(letter);
    let begins_well = word.starts_with(|first: char| first.is_alphanumeric() || matches!(first, '_' | '/' | '{'));
    // A shell expands `{1..9}`.
    word.len() <= LONGEST && begins_well && word.chars().all(is_plain) && !word.contains("..")
}

fn registered() -> Option<Vec<RegisteredPolicy>> {
    let connection = connection(&typed())?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = async { connection.connect().await.ok()?.registered_policies().await.ok() };
    let registered = runtime.block_on(async { timeout(PATIENCE, asked).await.ok()? });
    registered.as_ref().map(Registered::policies).map(<[_]>::to_vec)
}

/// Returns the words so far, which a shell gives behind the first `--`.
fn typed() -> Vec<String> {
    env::args().skip_while(|word| word != "--").skip(2).collect()
}

/// Reads the options of the connection. Other words may be unfinished.
fn connection(typed: &[String]) -> Option<Connection> {
    let command = Connection::augment_args(Command::new("tallygate").no_binary_name(true).ignore_errors(true));
    let options: Vec<_> =
        command.get_arguments().filter_map(|option| option.get_long()).map(|name| format!("--{name}")).collect();
    let mut known = Vec::new();
    for (place, word) in typed.iter().enumerate() {
        if options.contains(word) {
            known.extend(typed.iter().skip(place).take(2));
        } else if word.split_once('=').is_some_and(|(option, _)| options.iter().any(|known| known == option)) {
            known.push(word);
        }
    }
    Connection::from_arg_matches(&command.try_get_matches_from(known).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_offered_that_no_shell_changes() {
        for word in ["sms.send", "a::b", "每天", "{ip}=", "{@user}", "/login", "_x-1"] {
            assert!(is_left_alone(word), "{word}");
        }
        let long = "a".repeat(257);
        for word in [
            "a$(touch x)",
            "a`touch x`",
            "$HOME",
            "a;b",
            "a b",
            "a|b",
            "a&b",
            "a>b",
            "a*",
            "a?",
            "[a]",
            "~",
            "a~",
            "!1",
            "#a",
            "-a",
            "--url=redis://h",
            "=ls",
            "%1",
            "@a",
            "'a",
            "\"a",
            "a\\",
            "{a,b}",
            "{1..100000000}",
            "x{a..z}y",
            "a\nb",
            "a\tb",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "(a)",
            "",
            "^a",
            &long,
        ] {
            assert!(!is_left_alone(word), "{word}");
        }
    }

    #[test]
    fn the_words_of_the_connection_are_read_among_unfinished_ones() {
        let typed = ["top", "--unknown", "sms.send", "--prefix", "shop", "--url=redis://h/", "--on"].map(str::to_owned);
        let connection = connection(&typed).unwrap();
        assert_eq!((connection.prefix.as_str(), connection.is_known()), ("shop", true));
    }
}
