//! Suggests the rule that a mistaken text probably means.

use std::mem::swap;

use crate::duration::format_duration;
use crate::rule::Rule;
use crate::suggestion::{meant, nearest, synonym};
use crate::text::meant::read_words;
use crate::text::parse::{OPTIONS, parse};
use crate::text::scan::{Token, is_number, scan};
use crate::unit::{CALLS, OTHER_WORDS_FOR_CALLS, check_unit};

/// The longest text, in bytes, that may be a rule with a slip.
const LONGEST: usize = 500;

/// Words that may be left out in front of the count.
const BEFORE: [&str; 12] =
    ["at", "most", "max", "maximum", "up", "to", "allow", "limit", "only", "rate", "count", "rule"];

/// Words that mean `per`.
const PER: [&str; 9] = ["per", "every", "each", "in", "a", "an", "within", "for", "/"];

/// Words that may be left out before the duration.
const WINDOW: [&str; 6] = ["the", "any", "window", "windows", "of", "a"];

/// Words of the text form that have other names elsewhere.
#[rustfmt::skip]
const RENAMED: [&str; 16] = [
    "1", "2", "3", "5", "10", "about", "prevent_duplicate", "fixed", "sliding", "bucket", "concurrent", "burst", "initial",
    "reset_after", "shadow", "as",
];

/// The most words that are one word of the text form, like `at the same time`.
const LONGEST_PHRASE: usize = 4;

/// The lease of a concurrency limit that has none, as in the examples.
const LEASE: &str = "30s";

/// Words that mean a window, and those of language models, which name the unit, too.
const RATES: [(&str, &str); 14] = [
    ("rps", "per 1s"),
    ("qps", "per 1s"),
    ("rpm", "per 1m"),
    ("rph", "per 1h"),
    ("rpd", "per 1d"),
    ("tps", "tokens per 1s"),
    ("tpm", "tokens per 1m"),
    ("tpd", "tokens per 1d"),
    ("secondly", "per 1s"),
    ("minutely", "per 1m"),
    ("hourly", "per 1h"),
    ("daily", "per 1d"),
    ("weekly", "per 7d"),
    ("monthly", "per 30d"),
];

pub(super) fn repair(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return None;
    }
    let mut draft = RepairDraft::new(&without_thousands(&without_names(text)))?;
    draft.join_phrases();
    draft.count();
    if draft.concurrent() {
        draft.lease();
    } else {
        draft.window()?;
    }
    draft.options()?;
    let rule: Rule = parse(&scan(&draft.repaired.join(" ")).ok()?).ok()?;
    Some(rule.to_string())
}

/// Removes the signs of named values, like those of `rate=10r/s burst=5` and `rule(count = 10, per = "60s")`.
fn without_names(text: &str) -> String {
    let is_rule = |name: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case(name));
    let has_names = text.contains(['=', ':']) && (is_rule("rate") || is_rule("count") || is_rule("limit"));
    if !has_names || is_rule("cron") {
        return text.to_owned();
    }
    text.replace(['=', ':', '(', ')', '{', '}', '"', '\'', ','], " ")
}

/// Removes the commas of numbers like `1,000`.
fn without_thousands(text: &str) -> String {
    let groups: Vec<&str> = text.split(',').collect();
    let mut joined = String::new();
    for (index, group) in groups.iter().enumerate() {
        let digits = group.bytes().take_while(u8::is_ascii_digit).count();
        if index > 0 && (digits != 3 || !joined.ends_with(|last: char| last.is_ascii_digit())) {
            joined.push(',');
        }
        joined.push_str(group);
    }
    joined
}

/// A text under repair.
struct RepairDraft {
    /// The words that are not repaired yet.
    written: Vec<String>,
    /// The words of `written` in lower case.
    words: Vec<String>,
    repaired: Vec<String>,
    /// The algorithm that stood in front of the count: `fixed` or `bucket`.
    algorithm: Option<&'static str>,
}

impl RepairDraft {
    fn new(text: &str) -> Option<Self> {
        let mut written = Vec::new();
        for token in scan(text).ok()? {
            match token {
                Token::Word(word, _) => match word.split_once('/') {
                    Some((count, window)) if is_counted(count, &written) => {
                        written.extend([count, "per", window].map(str::to_owned));
                    }
                    _ => written.push(word),
                },
                Token::Quoted(quoted, _) => written.push(format!("\"{quoted}\"")),
                Token::Separator(_) => return None,
            }
        }
        written.retain(|word| !word.is_empty());
        let words = written.iter().map(|word| word.to_lowercase()).collect();
        Some(Self { written, words, repaired: Vec::new(), algorithm: None })
    }

    /// Writes words that are one word of the text form, like `in flight` and `no duplicate`, as this word.
    fn join_phrases(&mut self) {
        let mut begin = 0;
        while begin < self.words.len() {
            let phrase = |length: &usize| {
                let words = self.words.get(begin..begin + length)?;
                Some((*length, synonym(&words.join("_"), &RENAMED)?))
            };
            if let Some((length, meant)) = (2..=LONGEST_PHRASE).rev().find_map(|length| phrase(&length)) {
                self.words.splice(begin..begin + length, [meant.to_owned()]);
                self.written.splice(begin..begin + length, [meant.to_owned()]);
            }
            begin += 1;
        }
    }

    fn count(&mut self) {
        self.skip(&BEFORE);
        if let Some(first) = self.words.first_mut()
            && let Some(count) = first.strip_prefix('~')
        {
            *first = count.to_owned();
            self.push("about");
        }
        self.leading_algorithm();
        self.swap_concurrent();
        if self.words.first().is_some_and(|word| nearest(word, ["prevent_duplicate"]).is_some()) {
            self.replace_first(1, "prevent_duplicate");
        } else if self.words.first().is_some_and(|word| nearest(word, ["about", "approx"]).is_some()) {
            self.replace_first(1, "about");
        }
        self.replace_synonym();
        if let [unit, count, ..] = &mut *self.words
            && is_unit(unit)
            && read_count(unit).is_none()
            && read_count(count).is_some()
        {
            swap(unit, count);
        }
        if let Some(count) = self.words.first().and_then(|word| read_count(word)) {
            self.replace_first(1, count);
        }
        if !self.skip(&OTHER_WORDS_FOR_CALLS) && self.words.first().is_some_and(|word| is_unit(word)) {
            let unit = self.words.first().cloned();
            self.replace_first(1, unit.unwrap_or_default());
        }
    }

    /// Takes the algorithm in front of the count, as in `token bucket 10 per 1h`.
    fn leading_algorithm(&mut self) {
        self.replace_synonym();
        self.algorithm =
            self.words.first().and_then(|word| ["fixed", "bucket"].into_iter().find(|known| known == word));
        if self.algorithm.is_some() || self.words.first().is_some_and(|word| word == "sliding") {
            self.skip_first(1);
            self.replace_synonym();
        }
    }

    /// Puts the count of `concurrent 5` first.
    fn swap_concurrent(&mut self) {
        if let [first, count, ..] = self.words.as_slice()
            && is_concurrent(first)
            && read_count(count).is_some()
        {
            self.words.swap(0, 1);
            self.written.swap(0, 1);
        }
    }

    /// Returns whether the rule is a concurrency limit.
    fn concurrent(&mut self) -> bool {
        let is_concurrent = self.words.first().is_some_and(|word| is_concurrent(word));
        if is_concurrent {
            self.replace_first(1, "concurrent");
            let _ = self.skip(&OTHER_WORDS_FOR_CALLS) || self.skip(&[CALLS]);
        }
        is_concurrent
    }

    fn lease(&mut self) {
        self.push("lease");
        if !self.skip(&PER) && self.words.first().is_some_and(|word| meant(word, &["lease"]).is_some()) {
            self.skip_first(1);
        }
        self.skip(&WINDOW);
        match read_words(&self.words) {
            Some((duration, words)) => self.replace_first(words, format_duration(duration)),
            None if self.words.first().is_some_and(|word| is_number(word)) => self.seconds(),
            None => self.push(LEASE),
        }
    }

    fn window(&mut self) -> Option<()> {
        if let Some((_, window)) = self.words.first().and_then(|word| RATES.iter().find(|(rate, _)| rate == word)) {
            self.skip_first(1);
            self.push(*window);
            return Some(());
        }
        let mut has_per = self.skip(&PER);
        if !has_per && self.words.first().is_some_and(|word| nearest(word, ["per"]).is_some()) {
            self.skip_first(1);
            has_per = true;
        }
        if !has_per && self.repaired.iter().any(|word| word == "prevent_duplicate") && self.words.is_empty() {
            return Some(());
        }
        self.push("per");
        self.skip(&WINDOW);
        self.replace_synonym();
        if self.words.first().is_some_and(|word| nearest(word, ["fixed"]).is_some()) {
            self.replace_first(1, "fixed");
        } else if self.algorithm == Some("fixed") {
            self.push("fixed");
        } else if self.words.first().is_some_and(|word| word == "sliding") {
            self.skip_first(1);
        }
        self.skip(&WINDOW);
        if self.words.first()?.starts_with(['"', '@']) {
            self.keep_first(1);
        } else if let Some((duration, words)) = read_words(&self.words) {
            self.replace_first(words, format_duration(duration));
            return Some(());
        } else if is_number(self.words.first()?) && self.words.get(1).is_none_or(|next| OPTIONS.contains(&&**next)) {
            self.seconds();
            return Some(());
        } else {
            let fields = self.words.iter().take(6).take_while(|word| is_cron_field(word)).count();
            let expression = self.written.get(..6).filter(|_| fields == 6)?.join(" ");
            self.replace_first(6, format!("\"{expression}\""));
        }
        // The time zone.
        self.skip(&["in", "tz"]);
        if self.words.first().is_some_and(|word| nearest(word, OPTIONS).is_none()) {
            self.keep_first(1);
        }
        Some(())
    }

    fn options(&mut self) -> Option<()> {
        if self.algorithm == Some("bucket") {
            self.push("bucket");
        }
        while !self.words.is_empty() {
            self.skip(&["in", "with"]);
            self.replace_synonym();
            let word = self.words.first()?;
            if word == "sliding" {
                self.skip_first(1);
                continue;
            }
            if nearest(word, ["fixed"]).is_some() {
                let per = self.repaired.iter().position(|word| word == "per")?;
                self.repaired.insert(per + 1, "fixed".to_owned());
                self.skip_first(1);
                continue;
            }
            let option = nearest(word, OPTIONS)?;
            self.replace_first(1, option);
            match option {
                "as" => self.keep_first(1),
                "bucket" | "shadow" => {}
                "reset_after" => {
                    let (duration, words) = read_words(&self.words)?;
                    self.replace_first(words, format_duration(duration));
                }
                _ => {
                    let count = read_count(self.words.first()?)?;
                    self.replace_first(1, count);
                }
            }
        }
        Some(())
    }

    /// Writes the number as seconds, in which most libraries count.
    fn seconds(&mut self) {
        let seconds = self.words.first().map(|number| format!("{number}s")).unwrap_or_default();
        self.replace_first(1, seconds);
    }

    fn push(&mut self, word: impl Into<String>) {
        self.repaired.push(word.into());
    }

    /// Replaces the first words by another one.
    fn replace_first(&mut self, number: usize, word: impl Into<String>) {
        self.push(word);
        self.skip_first(number);
    }

    /// Moves the first words unchanged to the repaired ones.
    fn keep_first(&mut self, number: usize) {
        self.repaired.extend(self.written.iter().take(number).cloned());
        self.skip_first(number);
    }

    fn skip_first(&mut self, number: usize) {
        let number = number.min(self.words.len());
        self.words.drain(..number);
        self.written.drain(..number);
    }

    /// Skips these words, and returns whether there were any.
    fn skip(&mut self, unneeded: &[&str]) -> bool {
        let number = self.words.iter().take_while(|word| unneeded.contains(&word.as_str())).count();
        self.skip_first(number);
        number > 0
    }

    fn replace_synonym(&mut self) {
        if let Some(first) = self.words.first_mut()
            && let Some(meant) = synonym(first, &RENAMED)
        {
            meant.clone_into(first);
        }
    }
}

/// Whether the word means `concurrent`.
fn is_concurrent(word: &str) -> bool {
    meant(word, &["concurrent"]).is_some()
}

/// Reads a count as people write it: `100`, `1_000`, `10k`, `5x`.
fn read_count(word: &str) -> Option<String> {
    if word == "n" {
        return Some(word.to_owned());
    }
    let digits = word.replace('_', "");
    let digits = ["x", "r", "req", "reqs"].iter().find_map(|unit| digits.strip_suffix(unit)).unwrap_or(&digits);
    let (digits, zeros) = match digits.strip_suffix('k') {
        Some(digits) => (digits, "000"),
        None => (digits, ""),
    };
    is_number(digits).then(|| format!("{digits}{zeros}"))
}

/// Returns whether the word before a `/` may be a count or something counted: `10/m`, `10r/s`, `10 tokens/min`. A time
/// zone has a `/`, too.
fn is_counted(word: &str, before: &[String]) -> bool {
    let is_behind_count = || matches!(before, [.., count] if read_count(&count.to_lowercase()).is_some());
    let is_first = || !before.iter().any(|word| PER.contains(&&*word.to_lowercase()));
    word.is_empty() || read_count(word).is_some() || is_behind_count() && is_first()
}

/// Returns whether the word after a count may be its unit.
fn is_unit(word: &str) -> bool {
    let is_of_window = PER.contains(&word)
        || WINDOW.contains(&word)
        || RATES.iter().any(|(rate, _)| *rate == word)
        || read_words(&[word.to_owned()]).is_some();
    !is_of_window
        && !is_concurrent(word)
        && check_unit(word).is_ok()
        && nearest(word, OPTIONS).is_none()
        && nearest(word, ["per"]).is_none()
}

fn is_cron_field(word: &str) -> bool {
    word.chars().all(|character| character.is_ascii_alphanumeric() || "*?/-#".contains(character))
}
