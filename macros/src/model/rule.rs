//! The model of a rule, whose arguments have to fit its algorithm.

use std::time::Duration;

use syn::{Expr, LitInt, LitStr};
use tallygate_rules::{DUPLICATE_PER, Field, Rule, TokenBucket, nearest};

use crate::attr::{Amount, DuplicateOptions, RuleOptions};
use crate::diagnostic::{Diagnostics, SpanRange, error};
use crate::model::value::{duration, number, template};
use crate::template::{Purpose, Template};

/// A rule, and the places of its arguments.
pub(crate) struct RuleModel {
    pub(crate) rule: Rule,
    /// The count, if each call evaluates it.
    pub(crate) count: Option<Expr>,
    /// The key of the subject that the rule counts, if it is not the subject of the policy.
    pub(crate) key: Option<Template>,
    /// The text of a rejection by the rule.
    pub(crate) message: Option<Template>,
    /// Whether all its arguments could be read. Valid values take the places of the others.
    pub(crate) complete: bool,
    pub(crate) span: SpanRange,
    spans: Vec<(Field, SpanRange)>,
}

/// The algorithms, by their names in the attribute.
#[derive(Clone, Copy, PartialEq)]
enum Algorithm {
    SlidingWindow,
    FixedWindow,
    SlidingCounter,
    TokenBucket,
    /// A rule with the argument `cron`.
    Cron,
}

const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("sliding_window", Algorithm::SlidingWindow),
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_counter", Algorithm::SlidingCounter),
    ("token_bucket", Algorithm::TokenBucket),
];

impl RuleModel {
    pub(crate) fn duplicate(options: &DuplicateOptions, diagnostics: &mut Diagnostics) -> Self {
        let before = diagnostics.count();
        let per = options.per.as_ref().and_then(|per| diagnostics.ok_or_report(duration("per", per)));
        Self {
            rule: Rule::duplicate(per.unwrap_or(DUPLICATE_PER)),
            count: None,
            key: template(options.key.as_ref(), Purpose::Key, diagnostics),
            complete: options.complete && diagnostics.count() == before,
            message: template(options.message.as_ref(), Purpose::Message, diagnostics),
            span: options.span,
            spans: options.per.iter().map(|per| (Field::Per, SpanRange::from(per.span()))).collect(),
        }
    }

    pub(crate) fn from_syn(options: RuleOptions, diagnostics: &mut Diagnostics) -> Self {
        let before = diagnostics.count();
        let rule = limit(&options, diagnostics);
        let complete = options.complete && diagnostics.count() == before;
        let key = template(options.key.as_ref(), Purpose::Key, diagnostics);
        let message = template(options.message.as_ref(), Purpose::Message, diagnostics);
        let spans = spans(&options);
        let rule = match &options.name {
            Some(name) => rule.named(name.value()),
            None => rule,
        };
        let (rule, count) = match options.count {
            Some(Amount::Literal(count)) => (rule.with_count(number(&count)), None),
            Some(Amount::Expression(count)) => (rule.varying(), Some(count)),
            // It could not be read. A count that varies is compared with no other.
            None => (rule.varying(), None),
        };
        Self { rule, count, key, message, complete, span: options.span, spans }
    }

    /// Returns the place of an argument, or of the whole rule.
    pub(crate) fn span_of(&self, field: Field) -> SpanRange {
        self.spans.iter().find(|(written, _)| *written == field).map_or(self.span, |(_, span)| *span)
    }
}

/// Returns the rule without its name and its count.
fn limit(options: &RuleOptions, diagnostics: &mut Diagnostics) -> Rule {
    let per = options.per.as_ref().and_then(|per| diagnostics.ok_or_report(duration("per", per)));
    let per = per.unwrap_or(Duration::from_secs(1));
    let bucket = bucket(options, per, diagnostics);
    let algorithm = diagnostics.ok_or_report(algorithm(options));
    if let Some(algorithm) = algorithm {
        report_misfits(options, algorithm, diagnostics);
    }
    match algorithm {
        Some(Algorithm::FixedWindow) => Rule::fixed_window(0, per),
        Some(Algorithm::SlidingCounter) => Rule::sliding_counter(0, per),
        Some(Algorithm::TokenBucket) => Rule::from_bucket(0, bucket),
        Some(Algorithm::Cron) => schedule(options, diagnostics).unwrap_or(Rule::fixed_window(0, per)),
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
    let name = literal.value();
    let known = ALGORITHMS.map(|(name, _)| name);
    let remedy = match nearest(&name, known) {
        _ if name == "cron" => "write `cron = \"0 0 6 * * *\"` instead of it and of `per`".to_owned(),
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are `{}`, and `cron = \"…\"`", known.join("`, `")),
    };
    error(literal.span(), format_args!("unknown algorithm `{name}`; {remedy}"))
}

fn bucket(options: &RuleOptions, per: Duration, diagnostics: &mut Diagnostics) -> TokenBucket {
    let mut bucket = TokenBucket::new(per);
    if let Some(capacity) = &options.capacity {
        bucket = bucket.with_capacity(number(capacity));
    }
    if let Some(initial) = &options.initial {
        bucket = bucket.with_initial(number(initial));
    }
    let reset_after = options.reset_after.as_ref().map(|text| duration("reset_after", text));
    match reset_after.and_then(|read| diagnostics.ok_or_report(read)) {
        Some(reset_after) => bucket.with_reset_after(reset_after),
        None => bucket,
    }
}

/// Reports every argument that does not belong to the algorithm.
fn report_misfits(options: &RuleOptions, algorithm: Algorithm, diagnostics: &mut Diagnostics) {
    let RuleOptions { per, capacity, initial, reset_after, tz, .. } = options;
    let bucket = [
        ("capacity", capacity.as_ref().map(LitInt::span)),
        ("initial", initial.as_ref().map(LitInt::span)),
        ("reset_after", reset_after.as_ref().map(LitStr::span)),
    ];
    for (name, span) in bucket {
        if let Some(span) = span.filter(|_| algorithm != Algorithm::TokenBucket) {
            let message = format!("`{name}` is for token buckets; add `algorithm = \"token_bucket\"`, or remove it");
            diagnostics.report(span, message);
        }
    }
    match algorithm {
        Algorithm::Cron => {
            if let Some(per) = per {
                let message = "`per` and `cron` exclude each other: counting starts again either after `per` or at a tick; remove one";
                diagnostics.report(per.span(), message);
            }
        }
        _ => {
            if let Some(tz) = tz {
                let message =
                    "`tz` is the time zone of a `cron`; add `cron = \"0 0 6 * * *\"` in place of `per`, or remove it";
                diagnostics.report(tz.span(), message);
            }
        }
    }
}

/// Reads the expression and the time zone separately, as both may be mistaken.
#[cfg(feature = "cron")]
fn schedule(options: &RuleOptions, diagnostics: &mut Diagnostics) -> Option<Rule> {
    use tallygate_rules::Schedule;
    let expression = options.cron.as_ref()?;
    let read = Schedule::parse(&expression.value(), UTC).map_err(|why| error(expression.span(), why));
    let read = diagnostics.ok_or_report(read);
    let schedule = match &options.tz {
        None => read,
        Some(zone) => {
            let known = Schedule::parse("@daily", &zone.value()).map_err(|why| error(zone.span(), why));
            let known = diagnostics.ok_or_report(known);
            read.and(known).and_then(|_| Schedule::parse(&expression.value(), &zone.value()).ok())
        }
    };
    schedule.map(|schedule| Rule::cron(0, schedule))
}

#[cfg(feature = "cron")]
const UTC: &str = "UTC";

#[cfg(not(feature = "cron"))]
fn schedule(options: &RuleOptions, diagnostics: &mut Diagnostics) -> Option<Rule> {
    let expression = options.cron.as_ref()?;
    diagnostics.report(
        expression.span(),
        "`cron` needs the feature `cron` of tallygate; add it in Cargo.toml, like `features = [\"cron\"]`",
    );
    None
}

fn spans(options: &RuleOptions) -> Vec<(Field, SpanRange)> {
    let count = options.count.as_ref().map(|count| match count {
        Amount::Literal(count) => SpanRange::from(count.span()),
        Amount::Expression(count) => SpanRange::of_tokens(count),
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
    .filter_map(|(field, span)| Some((field, span?)))
    .collect()
}
