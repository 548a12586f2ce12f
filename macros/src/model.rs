//! The meaning of the attribute: a policy, its subjects, the options of a call, and the messages of a rejection.

mod rule;
mod subject;
mod unit;

use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use syn::{Expr, Path};
use tallygate_rules::{CALLS, Field, OnOutage, RELEASED_LABEL, Role, TemplateUse, meant};

pub(crate) use self::rule::{BanModel, RuleModel};
pub(crate) use self::subject::{CountingSubject, SubjectModel};
pub(crate) use self::unit::{UnitModel, UnitSettlement};
use crate::attr::{Amount, Arguments, number};
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};
use crate::template::SpannedTemplate;

pub(crate) struct Model {
    pub(crate) name: Option<Spanned<String>>,
    /// The rule of `prevent_duplicate` comes first, and those of `concurrency` come last.
    pub(crate) rules: Vec<RuleModel>,
    pub(crate) ban: Option<BanModel>,
    pub(crate) on_outage: Option<Spanned<OnOutage>>,
    pub(crate) deadline: Option<Spanned<Duration>>,
    /// The share of a limit from which a subject is near it.
    pub(crate) warn_at: Option<Spanned<f64>>,
    /// How long calls are taken ahead.
    pub(crate) prefetch: Option<Spanned<Duration>>,
    /// The function that returns how long the result of a call pauses its subject.
    pub(crate) pause: Option<Expr>,
    pub(crate) longest_pause: Option<Spanned<Duration>>,
    /// The key of the subject that is paused.
    pub(crate) pause_key: Option<SpannedTemplate>,
    /// A policy that is built elsewhere, in place of the name, the rules and the ban.
    pub(crate) policy: Option<Expr>,
    pub(crate) key: Option<SpannedTemplate>,
    /// The other subjects of `policy`.
    pub(crate) subjects: Vec<SubjectModel>,
    /// Whether there is a `key`, even one that could not be read.
    pub(crate) has_key: bool,
    /// The message of a rejection by a rule without a message of its own.
    pub(crate) message: Option<SpannedTemplate>,
    pub(crate) cost: Option<Amount>,
    pub(crate) allow_zero_cost: Option<SpanRange>,
    pub(crate) wait: Option<Spanned<Duration>>,
    pub(crate) refund_if: Option<Expr>,
    /// The key of the one subject on which a call is refunded.
    pub(crate) refund_key: Option<SpannedTemplate>,
    /// The function that returns what the call has used, and so what it counts as.
    pub(crate) settle: Option<Expr>,
    /// What a call uses beside its cost in calls.
    pub(crate) units: Vec<UnitModel>,
    /// The span of `until = "body"`, with which a call runs until the body of its response is over.
    pub(crate) until_body: Option<SpanRange>,
    pub(crate) skip_if: Option<Expr>,
    pub(crate) shadow: Option<SpanRange>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    /// The name of the companion, the function that returns the check of a call.
    pub(crate) check_fn: Option<Ident>,
    /// The name of the type with the responses to rejected calls.
    pub(crate) openapi: Option<Ident>,
    pub(crate) runtime: Option<Path>,
    /// Whether every argument that may be a rule could be read.
    pub(crate) complete: bool,
}

/// The denials that a message is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum MessageScope {
    /// The rule at this position.
    Rule(usize),
    /// Any rule without a message of its own.
    Policy,
    Ban,
}

#[derive(Clone, Copy)]
pub(crate) struct OtherSubject<'a> {
    pub(crate) label: &'a str,
    /// `None` if all calls are one subject.
    pub(crate) key: Option<&'a SpannedTemplate>,
}

/// The release of a call's duplicates, and the label of their subject.
#[derive(Clone, Copy)]
pub(crate) struct Release<'a> {
    pub(crate) label: &'a str,
    /// `None` if all calls are one subject.
    pub(crate) key: Option<&'a SpannedTemplate>,
    /// The condition on the result of the call.
    pub(crate) condition: &'a Expr,
}

impl Model {
    /// Reads the arguments of the attribute, and reports every mistake in them.
    pub(crate) fn read(attribute: TokenStream, diagnostics: &mut Diagnostics) -> Self {
        let mut arguments = Arguments::parse(attribute, diagnostics);
        let rules = arguments.take_all("rule");
        let units = arguments.take_all("unit").into_iter();
        let is_in_place = refuse_misplaced(&mut arguments);
        let (has_policy, has_refund) = (arguments.has("policy"), arguments.has("refund_if"));
        let policy = arguments.value("policy", ["policy = SMS_POLICY", "Policy"]);
        let rules: Vec<_> = rules.into_iter().map(|rule| RuleModel::limit(rule, arguments.diagnostics)).collect();
        let duplicate = RuleModel::take_duplicate(&mut arguments);
        let concurrency = arguments.take_all("concurrency").into_iter();
        let concurrency: Vec<_> = concurrency.map(|rule| RuleModel::concurrency(rule, arguments.diagnostics)).collect();
        Self {
            units: units.map(|unit| UnitModel::read(unit, arguments.diagnostics)).collect(),
            rules: duplicate.into_iter().chain(rules).chain(concurrency).collect(),
            name: arguments.text("name", r#"name = "sms.send""#),
            has_key: arguments.has("key"),
            key: arguments.template("key", r#"key = "sms:{phone}""#, TemplateUse::Key),
            message: arguments.message(TemplateUse::Message),
            ban: BanModel::take(&mut arguments),
            on_outage: arguments.parsed("on_outage", r#"on_outage = "local""#, str::parse::<OnOutage>),
            deadline: arguments.duration("deadline", r#"deadline = "50ms""#),
            warn_at: arguments.fraction("warn_at", "warn_at = 0.8"),
            prefetch: arguments.duration("prefetch", r#"prefetch = "100ms""#),
            pause: arguments.function("pause", "pause = |answer| answer.retry_after()"),
            longest_pause: arguments.duration("longest_pause", r#"longest_pause = "1h""#),
            pause_key: arguments.template("pause_key", r#"pause_key = "{host}""#, TemplateUse::Key),
            subjects: SubjectModel::take_all(&mut arguments),
            cost: arguments.amount("cost", ["cost = 3", "cost = items.len() as u64"]),
            allow_zero_cost: arguments.flag("allow_zero_cost"),
            wait: arguments.duration("wait", r#"wait = "2s""#),
            refund_if: arguments.function("refund_if", "refund_if = Result::is_err"),
            refund_key: subject::take_refund_key(&mut arguments, has_refund),
            settle: arguments.function("settle", "settle = |reply| reply.tokens()"),
            until_body: arguments.parsed("until", r#"until = "body""#, check_until).map(|until| until.span),
            skip_if: arguments.expression("skip_if", "skip_if = user.is_admin()"),
            shadow: arguments.flag("shadow"),
            reject: arguments.function("reject", "reject = ApiError::limited"),
            limiter: arguments.value("limiter", ["limiter = self.limiter", "Limiter"]),
            check_fn: arguments.identifier("check_fn", ["a function", "check_fn = send_code_limit"]),
            openapi: arguments.identifier("openapi", ["a type", "openapi = SendCodeLimits"]),
            runtime: arguments.path("crate", "crate = ::tallygate"),
            complete: arguments.finish().all_known && is_in_place && has_policy == policy.is_some(),
            policy,
        }
    }

    /// Returns the keys of the policy, of rules and of other subjects.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SpannedTemplate> {
        let of_rules = self.rules.iter().filter_map(|rule| rule.key.as_ref());
        let of_subjects = self.subjects.iter().filter_map(|subject| subject.key.as_ref());
        self.key.iter().chain(of_rules).chain(of_subjects)
    }

    /// Returns the names of the policy and of its rules, with their spans.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, SpanRange)> {
        let of_policy = self.name.iter().map(|name| (name.value.as_str(), name.span));
        let of_rules =
            self.rules.iter().filter_map(|rule| Some((rule.rule.name()?, rule.written.span_of(Field::Name))));
        of_policy.chain(of_rules)
    }

    /// Replaces `{*}` in all keys, and in `refund_key` and `pause_key`, by the arguments of the function.
    pub(crate) fn replace_all_placeholder(&mut self, names: &[String]) {
        let of_rules = self.rules.iter_mut().filter_map(|rule| rule.key.as_mut());
        let of_subjects = self.subjects.iter_mut().filter_map(|subject| subject.key.as_mut());
        let keys = self.key.iter_mut().chain(of_rules).chain(of_subjects).chain(self.refund_key.as_mut());
        let keys = keys.chain(self.pause_key.as_mut());
        keys.filter(|key| key.shows_all_arguments()).for_each(|key| key.replace_all_placeholder(names));
    }

    /// Returns the messages of rules, of the ban and of the policy.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (MessageScope, &SpannedTemplate)> {
        let rules = self.rules.iter().enumerate();
        let of_rules =
            rules.filter_map(|(position, rule)| Some((MessageScope::Rule(position), rule.message.as_ref()?)));
        let of_ban = self.ban.iter().filter_map(|ban| Some((MessageScope::Ban, ban.message.as_ref()?)));
        let of_policy = self.message.iter().map(|message| (MessageScope::Policy, message));
        of_rules.chain(of_ban).chain(of_policy)
    }

    /// Returns the label of the subject that a rule counts; `None` for the main subject, also if the rule repeats its
    /// key.
    ///
    /// Released duplicates always have a label of their own, so that nothing else is released with them.
    pub(crate) fn label<'a>(&'a self, rule: &'a RuleModel) -> Option<&'a str> {
        let released = rule.release_if.as_ref().map(|_| RELEASED_LABEL);
        released.or_else(|| self.own_key(rule).map(|key| key.text.as_str()))
    }

    /// Returns the key of a rule, if it differs from the key of the main subject.
    pub(crate) fn own_key<'a>(&'a self, rule: &'a RuleModel) -> Option<&'a SpannedTemplate> {
        let main = self.key.as_ref().map(|key| key.text.as_str());
        rule.key.as_ref().filter(|own| Some(own.text.as_str()) != main)
    }

    /// Returns the key of the subject that a rule counts; `None` if all calls are one subject.
    pub(crate) fn key_of<'a>(&'a self, rule: &'a RuleModel) -> Option<&'a SpannedTemplate> {
        self.own_key(rule).or(self.key.as_ref())
    }

    /// Returns whether every argument of every rule could be read.
    pub(crate) fn are_rules_complete(&self) -> bool {
        self.rules.iter().all(|rule| rule.written.complete)
    }

    pub(crate) fn release(&self) -> Option<Release<'_>> {
        let rule = self.rules.iter().find(|rule| rule.release_if.is_some())?;
        Some(Release { label: self.label(rule)?, key: self.key_of(rule), condition: rule.release_if.as_ref()? })
    }

    /// Returns whether the call or somebody by hand may pause its subject.
    pub(crate) fn is_pausable(&self) -> bool {
        self.pause.is_some() || self.longest_pause.is_some()
    }

    /// Returns whether the function's result decides what the call counts as.
    pub(crate) fn is_refundable(&self) -> bool {
        self.refund_if.is_some() || self.is_settled() || self.release().is_some()
    }

    /// Returns the functions of the result that say what a call has used, each with its unit; calls come first.
    pub(crate) fn settlements(&self) -> impl Iterator<Item = (&str, &Expr)> {
        let of_calls = self.settle.iter().map(|settle| (CALLS, settle));
        let of_units = self.units.iter().filter_map(|unit| Some((unit.name()?, unit.settle_function()?)));
        of_calls.chain(of_units)
    }

    /// Returns what each call costs in a unit, if it is a number.
    pub(crate) fn known_cost(&self, unit: &str) -> Option<u64> {
        let (cost, otherwise) = if unit == CALLS {
            (self.cost.as_ref(), 1)
        } else {
            (self.units.iter().find(|declared| declared.name() == Some(unit))?.cost.as_ref(), 0)
        };
        match cost {
            None => Some(otherwise),
            Some(Amount::Literal(cost)) => Some(number(cost)),
            Some(Amount::Expression(_)) => None,
        }
    }

    /// Returns the units that the call meters while it runs.
    pub(crate) fn metered_units(&self) -> impl Iterator<Item = &str> {
        self.units.iter().filter(|unit| unit.is_metered()).filter_map(UnitModel::name)
    }

    /// Returns the units that the call declares, and does not meter.
    pub(crate) fn unmetered_units(&self) -> impl Iterator<Item = &str> {
        self.units.iter().filter(|unit| !unit.is_metered()).filter_map(UnitModel::name)
    }

    /// Returns where the call says how it is settled.
    pub(crate) fn settlement_spans(&self) -> impl Iterator<Item = SpanRange> {
        let of_calls = self.settle.iter().map(SpanRange::of_tokens);
        of_calls.chain(self.units.iter().filter_map(|unit| Some(unit.settle.as_ref()?.span())))
    }

    /// Returns whether a settlement decides what the call counts as.
    pub(crate) fn is_settled(&self) -> bool {
        self.settlement_spans().next().is_some()
    }

    pub(crate) fn other_subjects(&self) -> Vec<OtherSubject<'_>> {
        let named = self.subjects.iter();
        let named =
            named.filter_map(|named| Some(OtherSubject { label: &named.label.value, key: Some(named.key.as_ref()?) }));
        let mut subjects: Vec<_> = named.collect();
        for rule in &self.rules {
            let subject = self.label(rule).map(|label| OtherSubject { label, key: self.key_of(rule) });
            subjects.extend(subject.filter(|subject| subjects.iter().all(|known| known.label != subject.label)));
        }
        subjects
    }

    /// Returns the subjects that a refund can be for, each once: those of all rules but `concurrency`, which counts
    /// nothing that lasts longer than the call.
    pub(crate) fn counting_subjects(&self) -> Vec<CountingSubject<'_>> {
        if self.policy.is_some() {
            let main = CountingSubject { label: None, key: self.key.as_ref() };
            let others = self.other_subjects().into_iter();
            let others = others.map(|other| CountingSubject { label: Some(other.label), key: other.key });
            return self.key.iter().map(|_| main).chain(others).collect();
        }
        let mut subjects: Vec<CountingSubject<'_>> = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.rule.role() != Role::Concurrency) {
            let subject = CountingSubject { label: self.label(rule), key: self.key_of(rule) };
            if subjects.iter().all(|known| known.label != subject.label) {
                subjects.push(subject);
            }
        }
        subjects
    }

    /// Returns the label of the subject that is paused; `None` for the main subject.
    pub(crate) fn paused_label(&self) -> Option<&str> {
        let key = self.pause_key.as_ref()?;
        let counting = self.rules.iter().filter(|rule| rule.release_if.is_none());
        { counting }.filter_map(|rule| self.own_key(rule)).map(|own| own.text.as_str()).find(|own| *own == key.text)
    }

    /// Returns the only subject on which a call is refunded; `None` if it is refunded on all subjects.
    pub(crate) fn refunded_subject(&self) -> Option<CountingSubject<'_>> {
        let key = self.refund_key.as_ref()?;
        self.counting_subjects().into_iter().find(|subject| subject.has_key(&key.text))
    }
}

/// Reports arguments of rules and of bans that are outside of them. Returns whether there are none.
fn refuse_misplaced(arguments: &mut Arguments<'_>) -> bool {
    const RULE: &[&str] = &["count", "per", "algorithm", "capacity", "initial", "reset_after", "cron", "tz"];
    let misplaced: [(&[&str], &str); 6] = [
        (RULE, r#"belongs in a rule, like `rule(count = 10, per = "60s")`"#),
        (&["denials"], r#"belongs in a ban, like `ban(denials = 20, within = "10m", duration = "1h")`"#),
        (
            &["within", "duration"],
            "belongs in a ban, like `ban(denials = 20, within = \"10m\", duration = \"1h\")`; the window of a rule is \
             its `per`",
        ),
        (&["release_if"], "belongs in `prevent_duplicate`, like `prevent_duplicate(release_if = Result::is_err)`"),
        (
            &["limit"],
            "belongs in `concurrency(limit = 10, lease = \"30s\")`, for concurrent calls; for calls per time, write \
             `rule(count = 10, per = \"60s\")`",
        ),
        (&["lease"], r#"belongs in `concurrency(limit = 10, lease = "30s")`"#),
    ];
    misplaced.into_iter().fold(true, |in_place, (names, belongs)| arguments.refuse(names, belongs) && in_place)
}

/// Refuses all values but `body`.
fn check_until(end: &str) -> Result<(), String> {
    match end {
        "body" => Ok(()),
        _ if meant(end, &["body"]).is_some() => Err(format!("unknown `until`: `{end}`; did you mean `body`?")),
        _ => {
            Err(format!("unknown `until`: `{end}`; write `body`, or leave it out: a call then ends with its function"))
        }
    }
}
