//! What the attribute means: a policy, its subjects, the options of a call, and the messages of a rejection.

mod ban;
mod rule;
mod subject;
mod value;

use std::time::Duration;

use proc_macro2::Ident;
use syn::{Expr, Path};

pub(crate) use self::ban::BanModel;
pub(crate) use self::rule::RuleModel;
pub(crate) use self::subject::SubjectModel;
pub(crate) use self::value::number;
use crate::attr::{Amount, Options};
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};
use crate::model::value::{duration, spanned, template};
use crate::template::{Purpose, Template};

pub(crate) struct Model {
    pub(crate) name: Option<Spanned<String>>,
    /// The rules of the policy, that of `prevent_duplicate` first.
    pub(crate) rules: Vec<RuleModel>,
    pub(crate) ban: Option<BanModel>,
    /// A policy that is built elsewhere, in place of the name, the rules and the ban.
    pub(crate) policy: Option<Expr>,
    /// The key of the main subject.
    pub(crate) key: Option<Template>,
    /// The other subjects of a policy that is built elsewhere.
    pub(crate) subjects: Vec<SubjectModel>,
    /// Whether there is a `key`, even one that could not be read.
    pub(crate) has_key: bool,
    /// The text of a rejection by a rule that has none of its own.
    pub(crate) message: Option<Template>,
    pub(crate) cost: Option<Amount>,
    pub(crate) allow_zero_cost: Option<SpanRange>,
    pub(crate) wait: Option<Spanned<Duration>>,
    pub(crate) refund_if: Option<Expr>,
    pub(crate) skip_if: Option<Expr>,
    pub(crate) shadow: Option<SpanRange>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    /// The name of the function that returns the check of a call.
    pub(crate) check_fn: Option<Ident>,
    pub(crate) runtime: Option<Path>,
    /// Whether every argument could be read that may have been a rule.
    pub(crate) complete: bool,
}

/// The denials that a message is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Denier {
    /// The rule at this position.
    Rule(usize),
    /// Any rule without a message of its own.
    Policy,
    Ban,
}

/// A subject beside the main one.
#[derive(Clone, Copy)]
pub(crate) struct OtherSubject<'a> {
    pub(crate) label: &'a str,
    pub(crate) key: &'a Template,
}

impl Model {
    pub(crate) fn from_syn(options: Options, diagnostics: &mut Diagnostics) -> Self {
        let duplicate = options.prevent_duplicate.map(|duplicate| RuleModel::duplicate(&duplicate, diagnostics));
        let limits = options.rules.into_iter().map(|rule| RuleModel::from_syn(rule, diagnostics));
        Self {
            rules: duplicate.into_iter().chain(limits).collect(),
            ban: options.ban.map(|ban| BanModel::from_syn(&ban, diagnostics)),
            policy: options.policy,
            subjects: options.subjects.iter().map(|subject| SubjectModel::from_syn(subject, diagnostics)).collect(),
            name: options.name.as_ref().map(spanned),
            has_key: options.key.is_some(),
            key: template(options.key.as_ref(), Purpose::Key, diagnostics),
            message: template(options.message.as_ref(), Purpose::Message, diagnostics),
            cost: options.cost,
            allow_zero_cost: options.allow_zero_cost,
            wait: options.wait.and_then(|wait| {
                let value = diagnostics.ok_or_report(duration("wait", &wait))?;
                Some(Spanned { value, span: SpanRange::from(wait.span()) })
            }),
            refund_if: options.refund_if,
            skip_if: options.skip_if,
            shadow: options.shadow,
            reject: options.reject,
            limiter: options.limiter,
            check_fn: options.check_fn,
            runtime: options.runtime,
            complete: options.complete,
        }
    }

    /// Returns all keys: those of the policy, of rules and of other subjects.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Template> {
        let of_rules = self.rules.iter().filter_map(|rule| rule.key.as_ref());
        let of_subjects = self.subjects.iter().filter_map(|subject| subject.key.as_ref());
        self.key.iter().chain(of_rules).chain(of_subjects)
    }

    /// Returns all messages: those of rules, that of the ban and that of the policy.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Denier, &Template)> {
        let rules = self.rules.iter().enumerate();
        let of_rules = rules.filter_map(|(position, rule)| Some((Denier::Rule(position), rule.message.as_ref()?)));
        let of_ban = self.ban.iter().filter_map(|ban| Some((Denier::Ban, ban.message.as_ref()?)));
        let of_policy = self.message.iter().map(|message| (Denier::Policy, message));
        of_rules.chain(of_ban).chain(of_policy)
    }

    /// Returns the label of the subject that a rule counts, or `None` for the main subject, even where its key is repeated.
    pub(crate) fn label<'a>(&'a self, rule: &'a RuleModel) -> Option<&'a str> {
        let main = self.key.as_ref().map(|key| key.text.as_str());
        rule.key.as_ref().map(|key| key.text.as_str()).filter(|own| Some(*own) != main)
    }

    /// Returns the subjects beside the main one, each once.
    pub(crate) fn other_subjects(&self) -> Vec<OtherSubject<'_>> {
        let named = self.subjects.iter();
        let named =
            named.filter_map(|named| Some(OtherSubject { label: &named.label.value, key: named.key.as_ref()? }));
        let mut subjects: Vec<_> = named.collect();
        for rule in &self.rules {
            let subject = self.label(rule).zip(rule.key.as_ref()).map(|(label, key)| OtherSubject { label, key });
            subjects.extend(subject.filter(|subject| subjects.iter().all(|known| known.label != subject.label)));
        }
        subjects
    }
}
