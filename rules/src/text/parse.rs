//! Reading a rule from the words of its text.

use std::time::Duration;

use crate::algorithm::TokenBucket;
#[cfg(feature = "cron")]
use crate::cron::Schedule;
use crate::rule::{DUPLICATE_PER, Rule};
use crate::suggestion::{nearest, remedy};
use crate::text::error::TextFault;
use crate::text::scan::{Token, Words, is_bare, is_number, without_underscores};
use crate::unit::{CALLS, unit_fault};

/// The words that may follow the window.
pub(super) const OPTIONS: [&str; 6] = ["burst", "bucket", "initial", "reset_after", "shadow", "as"];

/// Reads one rule.
pub(super) fn parse(tokens: &[Token]) -> Result<Rule, TextFault> {
    let is_separator = |token: &&Token| matches!(token, Token::Separator(_));
    if let Some(wrong) = tokens.iter().find(|token| is_separator(token) && !token.separates_rules()) {
        return Err(TextFault::new(format!("`{}` does not separate rules", wrong.text()), "write `,` between them"));
    }
    if let Some(Token::Separator(separator)) = tokens.iter().find(is_separator) {
        let what = format!("`{separator}` separates the rules of a list, but one rule is expected");
        return Err(TextFault::new(what, "remove it"));
    }
    let mut words = Words::new(tokens);
    if words.peek().is_none() {
        return Err(TextFault::new("a rule is missing", "write one, like `100 per 1h`"));
    }
    if words.take("prevent_duplicate") { duplicate(&mut words) } else { limit(&mut words) }
}

fn duplicate(words: &mut Words<'_>) -> Result<Rule, TextFault> {
    let count = match words.peek_word() {
        None | Some("per" | "shadow" | "as") => ParsedCount::Fixed(1),
        Some(_) => count(words)?,
    };
    if let ParsedCount::Fixed(count @ 2..) = count {
        let what = format!("`prevent_duplicate` admits one call and not {count}");
        return Err(TextFault::new(what, format!("remove the `{count}`")));
    }
    check_counts_calls(unit(words)?, "prevent_duplicate")?;
    let per = if words.take("per") { words.duration("per")? } else { DUPLICATE_PER };
    let options = Options::read(words)?;
    if let Some(word) = options.bucket_word() {
        return Err(TextFault::new(format!("`prevent_duplicate` has no `{word}`"), "remove it"));
    }
    Ok(options.apply(count.apply(Rule::duplicate(per))))
}

fn limit(words: &mut Words<'_>) -> Result<Rule, TextFault> {
    let about = words.take("about");
    let count = count(words)?;
    let unit = unit(words)?;
    if words.take("concurrent") {
        check_counts_calls(unit, "concurrent")?;
        return concurrency(count, about, words);
    }
    expect_per(words)?;
    let fixed = words.take("fixed");
    let window = ParsedWindow::read(words)?;
    let options = Options::read(words)?;
    let algorithms = [about.then_some("about"), fixed.then_some("fixed"), window.algorithm(), options.bucket_word()];
    let mut algorithms = algorithms.into_iter().flatten();
    let algorithm = algorithms.next();
    if let (Some(one), Some(other)) = (algorithm, algorithms.next()) {
        let what = format!("`{one}` and `{other}` are different algorithms");
        return Err(TextFault::new(what, "keep one of them"));
    }
    let rule = match window {
        #[cfg(feature = "cron")]
        ParsedWindow::Schedule(schedule) => Rule::cron(0, schedule),
        ParsedWindow::Per(per) if about => Rule::sliding_counter(0, per),
        ParsedWindow::Per(per) if fixed => Rule::fixed_window(0, per),
        ParsedWindow::Per(per) if options.bucket_word().is_some() => Rule::from_bucket(0, options.bucket(per)?),
        ParsedWindow::Per(per) => Rule::sliding_window(0, per),
    };
    Ok(options.apply(count.apply(rule).counting(unit.unwrap_or(CALLS).to_owned())))
}

/// Reads the unit, which stands between the count and the window.
fn unit<'a>(words: &mut Words<'a>) -> Result<Option<&'a str>, TextFault> {
    let Some(unit) = words.take_before(&["per", "concurrent"]) else { return Ok(None) };
    match unit_fault(unit) {
        Some((fault, remedy)) => Err(TextFault::new(fault, remedy)),
        None => Ok(Some(unit).filter(|&unit| unit != CALLS)),
    }
}

fn check_counts_calls(unit: Option<&str>, kind: &str) -> Result<(), TextFault> {
    match unit {
        Some(unit) => {
            Err(TextFault::new(format!("`{kind}` counts calls and not `{unit}`"), format!("remove `{unit}`")))
        }
        None => Ok(()),
    }
}

fn concurrency(count: ParsedCount, about: bool, words: &mut Words<'_>) -> Result<Rule, TextFault> {
    if about {
        return Err(TextFault::new("`about` and `concurrent` are different algorithms", "keep one of them"));
    }
    // A unit stands before `concurrent`.
    let misplaced = words.take_before(&["lease"]).filter(|word| unit_fault(word).is_none());
    check_counts_calls(misplaced.filter(|&unit| unit != CALLS), "concurrent")?;
    if misplaced.is_some() || !words.take("lease") {
        return Err(TextFault::new("`lease` is missing after `concurrent`", "write `10 concurrent lease 30s`"));
    }
    let lease = words.duration("lease")?;
    let options = Options::read(words)?;
    if let Some(word) = options.bucket_word() {
        return Err(TextFault::new(format!("`concurrent` has no `{word}`"), "remove it"));
    }
    Ok(options.apply(count.apply(Rule::concurrency(0, lease))))
}

enum ParsedCount {
    Fixed(u64),
    Varying,
}

impl ParsedCount {
    fn apply(self, rule: Rule) -> Rule {
        match self {
            Self::Fixed(count) => rule.with_count(count),
            Self::Varying => rule.varying(),
        }
    }
}

fn count(words: &mut Words<'_>) -> Result<ParsedCount, TextFault> {
    let remedy = "write a whole number, like `100 per 1h`, or `n` for a count that each call gives";
    let Some(token) = words.next() else { return Err(TextFault::new("the count is missing", remedy)) };
    match token.word() {
        Some("per") => Err(TextFault::new("the count is missing", remedy)),
        Some("n") => Ok(ParsedCount::Varying),
        Some(text) if is_number(text) => without_underscores(text)
            .parse()
            .map(ParsedCount::Fixed)
            .map_err(|_| TextFault::new(format!("the count `{text}` is too great"), "write a smaller one")),
        _ => Err(TextFault::new(format!("the count `{}` is not a whole number", token.text()), remedy)),
    }
}

fn expect_per(words: &mut Words<'_>) -> Result<(), TextFault> {
    if words.take("per") {
        return Ok(());
    }
    let what = match words.next() {
        Some(token) => format!("after the count, `{}` stands in place of `per`", token.text()),
        None => "`per` and the window are missing after the count".to_owned(),
    };
    Err(TextFault::new(what, "write a window, like `100 per 1h`"))
}

/// The window after `per`.
enum ParsedWindow {
    Per(Duration),
    #[cfg(feature = "cron")]
    Schedule(Schedule),
}

impl ParsedWindow {
    fn read(words: &mut Words<'_>) -> Result<Self, TextFault> {
        match words.peek() {
            Some(token) if token.is_schedule() => {
                words.next();
                let zone = words.peek_word().filter(|word| !OPTIONS.contains(word));
                if zone.is_some() {
                    words.next();
                }
                Self::schedule(token.text(), zone.unwrap_or("UTC"))
            }
            _ => words.duration("per").map(Self::Per),
        }
    }

    #[cfg(feature = "cron")]
    fn schedule(expression: &str, zone: &str) -> Result<Self, TextFault> {
        Schedule::parse(expression, zone).map(Self::Schedule).map_err(TextFault::schedule)
    }

    #[cfg(not(feature = "cron"))]
    fn schedule(_: &str, _: &str) -> Result<Self, TextFault> {
        Err(TextFault::new("a schedule needs the feature `cron` of tallygate", "add it in Cargo.toml"))
    }

    fn algorithm(&self) -> Option<&'static str> {
        match self {
            Self::Per(_) => None,
            #[cfg(feature = "cron")]
            Self::Schedule(_) => Some("cron"),
        }
    }
}

/// The words after the window.
#[derive(Default)]
struct Options<'a> {
    bucket: bool,
    burst: Option<u64>,
    initial: Option<u64>,
    reset_after: Option<Duration>,
    shadow: bool,
    name: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn read(words: &mut Words<'a>) -> Result<Self, TextFault> {
        let mut options = Self::default();
        while let Some(token) = words.next() {
            let Some(word) = OPTIONS.iter().find(|&&option| token.word() == Some(option)) else {
                return Err(unknown_option(token));
            };
            let repeated = match *word {
                "bucket" => std::mem::replace(&mut options.bucket, true),
                "shadow" => std::mem::replace(&mut options.shadow, true),
                "burst" => options.burst.replace(words.number(word)?).is_some(),
                "initial" => options.initial.replace(words.number(word)?).is_some(),
                "reset_after" => options.reset_after.replace(words.duration(word)?).is_some(),
                _ => options.name.replace(name(words)?).is_some(),
            };
            if repeated {
                return Err(TextFault::new(format!("`{word}` is repeated"), "keep one of them"));
            }
        }
        Ok(options)
    }

    /// Returns the word that makes the rule a token bucket.
    fn bucket_word(&self) -> Option<&'static str> {
        let words = [
            self.burst.map(|_| "burst"),
            self.bucket.then_some("bucket"),
            self.initial.map(|_| "initial"),
            self.reset_after.map(|_| "reset_after"),
        ];
        words.into_iter().flatten().next()
    }

    fn bucket(&self, per: Duration) -> Result<TokenBucket, TextFault> {
        match self.bucket_word() {
            Some(word) if self.burst.is_none() && !self.bucket => {
                let what = format!("`{word}` is for token buckets");
                Err(TextFault::new(what, "write `bucket` or `burst 100` before it"))
            }
            _ => Ok(TokenBucket::of(per, self.burst, self.initial, self.reset_after)),
        }
    }

    /// Adds the options that any rule can have.
    fn apply(&self, rule: Rule) -> Rule {
        let rule = if self.shadow { rule.shadow() } else { rule };
        match self.name {
            Some(name) => rule.named(name.to_owned()),
            None => rule,
        }
    }
}

fn name<'a>(words: &mut Words<'a>) -> Result<&'a str, TextFault> {
    let remedy = "write one, like `as daily` or `as \"each day\"`";
    match words.next() {
        None => Err(TextFault::new("the name after `as` is missing", remedy)),
        Some(Token::Word(word, _)) if !is_bare(word) => {
            Err(TextFault::new(format!("the name `{word}` needs quotes"), format!("write `as \"{word}\"`")))
        }
        Some(token) => Ok(token.text()),
    }
}

fn unknown_option(token: &Token) -> TextFault {
    let word = token.text();
    let remedy = match word {
        "and" | "&" | "&&" | "+" => "write `,` between two rules".to_owned(),
        _ => remedy(nearest(word, OPTIONS), "there are", &OPTIONS),
    };
    TextFault::new(format!("after the window, `{word}` is unknown"), remedy)
}
