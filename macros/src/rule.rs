//! What a rule of the attribute means, and whether its arguments go together.

use std::time::Duration;

use syn::{Expr, LitInt, LitStr};
use tallygate_rules::{DUPLICATE_PER, Field, Rule, TokenBucket, parse_duration};

use crate::attr::{Amount, DuplicateOptions, RuleOptions};
use crate::diagnostic::{Mistakes, Place, error, nearest};
use crate::model::message;
use crate::template::{Purpose, Template};

/// A rule, and where its parts are written.
pub(crate) struct RuleModel {
    pub(crate) rule: Rule,
    /// The count of a rule that varies.
    pub(crate) count: Option<Expr>,
    /// Whom it counts, unless that is the subject of the policy.
    pub(crate) key: Option<Template>,
    /// What the caller is told when it denies.
    pub(crate) message: Option<Template>,
    /// Whether all its parts could be read. In place of the others stand ones that are sound.
    pub(crate) complete: bool,
    pub(crate) place: Place,
    places: Vec<(Field, Place)>,
}

/// The algorithms, by their names in the attribute.
#[derive(Clone, Copy, PartialEq)]
enum Algorithm {
    SlidingWindow,
    FixedWindow,
    SlidingCounter,
    TokenBucket,
    /// Named by having a `cron`.
    Cron,
}

const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("sliding_window", Algorithm::SlidingWindow),
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_counter", Algorithm::SlidingCounter),
    ("token_bucket", Algorithm::TokenBucket),
];

impl RuleModel {
    pub(crate) fn duplicate(options: &DuplicateOptions, mistakes: &mut Mistakes) -> Self {
        let before = mistakes.number();
        let per = options.per.as_ref().and_then(|per| mistakes.keep(duration("per", per)));
        Self {
            rule: Rule::duplicate(per.unwrap_or(DUPLICATE_PER)),
            count: None,
            key: key(options.key.as_ref(), mistakes),
            complete: options.complete && mistakes.number() == before,
            message: message(options.message.as_ref(), mistakes),
            place: options.place,
            places: options.per.iter().map(|per| (Field::Per, Place::from(per.span()))).collect(),
        }
    }

    pub(crate) fn from_syn(options: RuleOptions, mistakes: &mut Mistakes) -> Self {
        let before = mistakes.number();
        let rule = limit(&options, mistakes);
        let complete = options.complete && mistakes.number() == before;
        let (key, message) = (key(options.key.as_ref(), mistakes), message(options.message.as_ref(), mistakes));
        let places = places(&options);
        let rule = match &options.name {
            Some(name) => rule.named(name.value()),
            None => rule,
        };
        let (rule, count) = match options.count {
            Some(Amount::Literal(count)) => (rule.with_count(number(&count)), None),
            Some(Amount::Expression(count)) => (rule.varying(), Some(count)),
            // It could not be read: one that varies is compared with nothing.
            None => (rule.varying(), None),
        };
        Self { rule, count, key, message, complete, place: options.place, places }
    }

    /// Returns where a part of the rule is written.
    pub(crate) fn place_of(&self, field: Field) -> Place {
        self.places.iter().find(|(of, _)| *of == field).map_or(self.place, |(_, place)| *place)
    }
}

/// Returns the rule, but for its name and its count.
fn limit(options: &RuleOptions, mistakes: &mut Mistakes) -> Rule {
    let per = options.per.as_ref().and_then(|per| mistakes.keep(duration("per", per)));
    let per = per.unwrap_or(Duration::from_secs(1));
    let bucket = bucket(options, per, mistakes);
    let algorithm = mistakes.keep(algorithm(options));
    if let Some(algorithm) = algorithm {
        report_misfits(options, algorithm, mistakes);
    }
    match algorithm {
        Some(Algorithm::FixedWindow) => Rule::fixed_window(0, per),
        Some(Algorithm::SlidingCounter) => Rule::sliding_counter(0, per),
        Some(Algorithm::TokenBucket) => Rule::from_bucket(0, bucket),
        Some(Algorithm::Cron) => schedule(options, mistakes).unwrap_or(Rule::fixed_window(0, per)),
        Some(Algorithm::SlidingWindow) | None => Rule::sliding_window(0, per),
    }
}

fn algorithm(options: &RuleOptions) -> syn::Result<Algorithm> {
    match (&options.algorithm, &options.cron) {
        (None, None) => Ok(Algorithm::SlidingWindow),
        (None, Some(_)) => Ok(Algorithm::Cron),
        (Some(name), Some(_)) => Err(error(name.span(), "`cron` is an algorithm of its own; remove `algorithm`")),
        (Some(name), None) => {
            let known = ALGORITHMS.iter().find(|(known, _)| *known == name.value());
            known.map(|&(_, algorithm)| algorithm).ok_or_else(|| unknown_algorithm(name))
        }
    }
}

fn unknown_algorithm(literal: &LitStr) -> syn::Error {
    let (name, known) = (literal.value(), ALGORITHMS.map(|(name, _)| name));
    let remedy = match nearest(&name, known) {
        _ if name == "cron" => "write `cron = \"0 0 6 * * *\"` instead of it and of `per`".to_owned(),
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are `{}`, and `cron = \"…\"`", known.join("`, `")),
    };
    error(literal.span(), format_args!("unknown algorithm `{name}`; {remedy}"))
}

fn bucket(options: &RuleOptions, per: Duration, mistakes: &mut Mistakes) -> TokenBucket {
    let mut bucket = TokenBucket::new(per);
    if let Some(capacity) = &options.capacity {
        bucket = bucket.with_capacity(number(capacity));
    }
    if let Some(initial) = &options.initial {
        bucket = bucket.with_initial(number(initial));
    }
    let reset_after = options.reset_after.as_ref().map(|text| duration("reset_after", text));
    match reset_after.and_then(|read| mistakes.keep(read)) {
        Some(reset_after) => bucket.with_reset_after(reset_after),
        None => bucket,
    }
}

/// Reports every argument that the algorithm has no use for.
fn report_misfits(options: &RuleOptions, algorithm: Algorithm, mistakes: &mut Mistakes) {
    let RuleOptions { per, capacity, initial, reset_after, tz, .. } = options;
    let bucket = [
        ("capacity", capacity.as_ref().map(LitInt::span)),
        ("initial", initial.as_ref().map(LitInt::span)),
        ("reset_after", reset_after.as_ref().map(LitStr::span)),
    ];
    for (name, span) in bucket {
        if let Some(span) = span.filter(|_| algorithm != Algorithm::TokenBucket) {
            let message = format!("`{name}` is for token buckets; add `algorithm = \"token_bucket\"`, or remove it");
            mistakes.report(span, message);
        }
    }
    match algorithm {
        Algorithm::Cron => {
            if let Some(per) = per {
                let message = "`per` and `cron` both say when to count afresh; keep one of them";
                mistakes.report(per.span(), message);
            }
        }
        _ => {
            if let Some(tz) = tz {
                let message =
                    "`tz` is the time zone of a `cron`; add `cron = \"0 0 6 * * *\"` in place of `per`, or remove it";
                mistakes.report(tz.span(), message);
            }
        }
    }
}

/// Reads expression and time zone, each by itself: both may be mistaken.
#[cfg(feature = "cron")]
fn schedule(options: &RuleOptions, mistakes: &mut Mistakes) -> Option<Rule> {
    use tallygate_rules::Schedule;
    let expression = options.cron.as_ref()?;
    let read = Schedule::parse(&expression.value(), UTC).map_err(|why| error(expression.span(), why));
    let read = mistakes.keep(read);
    let schedule = match &options.tz {
        None => read,
        Some(zone) => {
            let known = Schedule::parse("@daily", &zone.value()).map_err(|why| error(zone.span(), why));
            let known = mistakes.keep(known);
            read.and(known).and_then(|_| Schedule::parse(&expression.value(), &zone.value()).ok())
        }
    };
    schedule.map(|schedule| Rule::cron(0, schedule))
}

#[cfg(feature = "cron")]
const UTC: &str = "UTC";

#[cfg(not(feature = "cron"))]
fn schedule(options: &RuleOptions, mistakes: &mut Mistakes) -> Option<Rule> {
    let expression = options.cron.as_ref()?;
    mistakes.report(
        expression.span(),
        "`cron` needs the feature `cron` of tallygate; add it in Cargo.toml, like `features = [\"cron\"]`",
    );
    None
}

fn places(options: &RuleOptions) -> Vec<(Field, Place)> {
    let count = options.count.as_ref().map(|count| match count {
        Amount::Literal(count) => Place::from(count.span()),
        Amount::Expression(count) => Place::of(count),
    });
    let per = options.per.as_ref().or(options.cron.as_ref());
    [
        (Field::Count, count),
        (Field::Per, per.map(|per| per.span().into())),
        (Field::Capacity, options.capacity.as_ref().map(|capacity| capacity.span().into())),
        (Field::Initial, options.initial.as_ref().map(|initial| initial.span().into())),
        (Field::ResetAfter, options.reset_after.as_ref().map(|text| text.span().into())),
        (Field::Name, options.name.as_ref().map(|name| name.span().into())),
    ]
    .into_iter()
    .filter_map(|(field, place)| Some((field, place?)))
    .collect()
}

fn key(literal: Option<&LitStr>, mistakes: &mut Mistakes) -> Option<Template> {
    literal.and_then(|key| Template::from_syn(key, Purpose::Key, mistakes))
}

/// One that is too large for the type is too large for a rule, which says so better.
pub(crate) fn number(literal: &LitInt) -> u64 {
    literal.base10_parse().unwrap_or(u64::MAX)
}

pub(crate) fn duration(name: &str, literal: &LitStr) -> syn::Result<Duration> {
    let read = parse_duration(&literal.value());
    read.map_err(|why| error(literal.span(), format_args!("`{name}` {why}")))
}
