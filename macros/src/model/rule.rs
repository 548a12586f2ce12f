//! The model of a rule, whose arguments have to fit its algorithm.

use syn::{Expr, LitStr};
use tallygate_rules::{ArgumentError, DUPLICATE_PER, Field, MAX_LEASE, Rule, RuleArguments};

use crate::attr::{Amount, ConcurrencyOptions, DuplicateOptions, RuleOptions};
use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::value::{duration, number, template};
use crate::template::{Template, TextPurpose};

/// A rule, and the places of its arguments.
pub(crate) struct RuleModel {
    pub(crate) rule: Rule,
    /// The count, if each call evaluates it.
    pub(crate) count: Option<Expr>,
    /// The key of the subject that the rule counts, if it is not the subject of the policy.
    pub(crate) key: Option<Template>,
    /// The text of a rejection by the rule.
    pub(crate) message: Option<Template>,
    /// When the hits of a call are taken back from this rule alone.
    pub(crate) release_if: Option<Expr>,
    /// Whether all its arguments could be read. Valid values take the places of the others.
    pub(crate) complete: bool,
    pub(crate) span: SpanRange,
    spans: Vec<(Field, SpanRange)>,
}

impl RuleModel {
    pub(crate) fn duplicate(options: &DuplicateOptions, diagnostics: &mut Diagnostics) -> Self {
        let before = diagnostics.count();
        let per = options.per.as_ref().and_then(|per| diagnostics.ok_or_report(duration("per", per)));
        Self {
            rule: Rule::duplicate(per.unwrap_or(DUPLICATE_PER)),
            count: None,
            key: template(options.key.as_ref(), TextPurpose::Key, diagnostics),
            complete: options.complete && diagnostics.count() == before,
            message: template(options.message.as_ref(), TextPurpose::Message, diagnostics),
            release_if: options.release_if.clone(),
            span: options.span,
            spans: options.per.iter().map(|per| (Field::Per, SpanRange::from(per.span()))).collect(),
        }
    }

    pub(crate) fn from_syn(options: RuleOptions, diagnostics: &mut Diagnostics) -> Self {
        let before = diagnostics.count();
        let rule = limit(&options, diagnostics);
        let complete = options.complete && diagnostics.count() == before;
        let key = template(options.key.as_ref(), TextPurpose::Key, diagnostics);
        let message = template(options.message.as_ref(), TextPurpose::Message, diagnostics);
        let spans = spans(&options);
        let (rule, count) = counted(named(rule, options.name.as_ref()), options.count);
        Self { rule, count, key, message, release_if: None, complete, span: options.span, spans }
    }

    pub(crate) fn concurrency(options: ConcurrencyOptions, diagnostics: &mut Diagnostics) -> Self {
        let before = diagnostics.count();
        let lease = options.lease.as_ref().and_then(|lease| diagnostics.ok_or_report(duration("lease", lease)));
        let complete = options.complete && diagnostics.count() == before;
        let key = template(options.key.as_ref(), TextPurpose::Key, diagnostics);
        let message = template(options.message.as_ref(), TextPurpose::Message, diagnostics);
        let spans = [
            (Field::Count, options.limit.as_ref().map(Amount::span)),
            (Field::Lease, options.lease.as_ref().map(|lease| lease.span().into())),
            (Field::Name, options.name.as_ref().map(|name| name.span().into())),
        ];
        let rule = named(Rule::concurrency(0, lease.unwrap_or(MAX_LEASE)), options.name.as_ref());
        let (rule, count) = counted(rule, options.limit);
        let spans = spans.into_iter().filter_map(|(field, span)| Some((field, span?))).collect();
        Self { rule, count, key, message, release_if: None, complete, span: options.span, spans }
    }

    /// Returns the place of an argument, or of the whole rule.
    pub(crate) fn span_of(&self, field: Field) -> SpanRange {
        self.spans.iter().find(|(written, _)| *written == field).map_or(self.span, |(_, span)| *span)
    }
}

fn named(rule: Rule, name: Option<&LitStr>) -> Rule {
    match name {
        Some(name) => rule.named(name.value()),
        None => rule,
    }
}

/// Returns the rule with its count, and the expression that each call evaluates for it, if there is one.
fn counted(rule: Rule, count: Option<Amount>) -> (Rule, Option<Expr>) {
    match count {
        Some(Amount::Literal(count)) => (rule.with_count(number(&count)), None),
        Some(Amount::Expression(count)) => (rule.varying(), Some(count)),
        // It could not be read. A count that varies is compared with no other.
        None => (rule.varying(), None),
    }
}

/// Returns the rule without its name and its count.
fn limit(options: &RuleOptions, diagnostics: &mut Diagnostics) -> Rule {
    let RuleOptions { algorithm, per, capacity, initial, reset_after, cron, tz, .. } = options;
    let text = |literal: &Option<LitStr>| literal.as_ref().map(LitStr::value);
    let (rule, mistakes) = RuleArguments {
        algorithm: text(algorithm).as_deref(),
        per: text(per).as_deref(),
        capacity: capacity.as_ref().map(number),
        initial: initial.as_ref().map(number),
        reset_after: text(reset_after).as_deref(),
        cron: text(cron).as_deref(),
        tz: text(tz).as_deref(),
    }
    .read();
    for ArgumentError { argument, message } in mistakes {
        diagnostics.report(span_of(options, argument), message);
    }
    rule
}

/// Returns the place of the value of an argument, or of the whole rule.
fn span_of(options: &RuleOptions, argument: &str) -> SpanRange {
    let texts = [
        ("algorithm", &options.algorithm),
        ("per", &options.per),
        ("reset_after", &options.reset_after),
        ("cron", &options.cron),
        ("tz", &options.tz),
    ];
    let numbers = [("capacity", &options.capacity), ("initial", &options.initial)];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?.span())));
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number.as_ref()?.span())));
    let place = texts.chain(numbers).find(|(name, _)| *name == argument);
    place.map_or(options.span, |(_, span)| span.into())
}

fn spans(options: &RuleOptions) -> Vec<(Field, SpanRange)> {
    let count = options.count.as_ref().map(Amount::span);
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
