//! What the attribute means: a policy, whom it counts, who decides, and what the caller is told.

use std::time::Duration;

use syn::{Expr, LitStr, Path};

use crate::attr::{Amount, Options};
use crate::ban::BanModel;
use crate::diagnostic::{Mistakes, Place, Spanned};
use crate::rule::{RuleModel, duration};
use crate::template::{Purpose, Template};

/// A policy as the attribute describes it.
pub(crate) struct Model {
    pub(crate) name: Option<Spanned<String>>,
    /// Its rules, that of duplicates in front.
    pub(crate) rules: Vec<RuleModel>,
    pub(crate) ban: Option<BanModel>,
    /// The policy that stands in for name, rules and ban.
    pub(crate) policy: Option<Expr>,
    pub(crate) key: Option<Template>,
    /// Whether there is a `key`, also one that could not be read.
    pub(crate) keyed: bool,
    /// What the caller is told where the rule says nothing.
    pub(crate) message: Option<Template>,
    pub(crate) cost: Option<Amount>,
    /// How long a call waits for admission.
    pub(crate) wait: Option<Spanned<Duration>>,
    pub(crate) refund_if: Option<Expr>,
    pub(crate) skip_if: Option<Expr>,
    pub(crate) shadow: Option<Place>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    pub(crate) runtime: Option<Path>,
    /// Whether nothing was written that could not be read, and might have been a rule.
    pub(crate) complete: bool,
}

/// Whose denial a message is about.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Denier {
    /// The rule at this position.
    Rule(usize),
    /// Any other rule.
    Policy,
    Ban,
}

impl Model {
    pub(crate) fn from_syn(options: Options, mistakes: &mut Mistakes) -> Self {
        let duplicate = options.prevent_duplicate.map(|duplicate| RuleModel::duplicate(&duplicate, mistakes));
        let limits = options.rules.into_iter().map(|rule| RuleModel::from_syn(rule, mistakes));
        Self {
            rules: duplicate.into_iter().chain(limits).collect(),
            ban: options.ban.map(|ban| BanModel::from_syn(&ban, mistakes)),
            policy: options.policy,
            name: options.name.as_ref().map(spanned),
            keyed: options.key.is_some(),
            key: options.key.and_then(|key| Template::from_syn(&key, Purpose::Key, mistakes)),
            message: message(options.message.as_ref(), mistakes),
            cost: options.cost,
            wait: options.wait.and_then(|wait| {
                let value = mistakes.keep(duration("wait", &wait))?;
                Some(Spanned { value, place: Place::from(wait.span()) })
            }),
            refund_if: options.refund_if,
            skip_if: options.skip_if,
            shadow: options.shadow,
            reject: options.reject,
            limiter: options.limiter,
            runtime: options.runtime,
            complete: options.complete,
        }
    }

    /// Returns the keys: that of the policy, and those of rules.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Template> {
        self.key.iter().chain(self.rules.iter().filter_map(|rule| rule.key.as_ref()))
    }

    /// Returns the messages: those of rules, that of the ban and that of the policy.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Denier, &Template)> {
        let rules = self.rules.iter().enumerate();
        let told = rules.filter_map(|(index, rule)| Some((Denier::Rule(index), rule.message.as_ref()?)));
        let banned = self.ban.as_ref().and_then(|ban| ban.message.as_ref());
        told.chain(banned.map(|message| (Denier::Ban, message))).chain(self.message.iter().map(|m| (Denier::Policy, m)))
    }

    /// Returns what a rule counts by itself: none is the subject of the policy, however it is written.
    pub(crate) fn label<'a>(&'a self, rule: &'a RuleModel) -> Option<&'a str> {
        let policys = self.key.as_ref().map(|key| key.text.as_str());
        rule.key.as_ref().map(|key| key.text.as_str()).filter(|own| Some(*own) != policys)
    }

    /// Returns the other subjects, each with its label and its key.
    pub(crate) fn others(&self) -> Vec<(&str, &Template)> {
        let mut others: Vec<(&str, &Template)> = Vec::new();
        for rule in &self.rules {
            let other = self.label(rule).zip(rule.key.as_ref());
            others.extend(other.filter(|(label, _)| others.iter().all(|(known, _)| known != label)));
        }
        others
    }
}

pub(crate) fn message(literal: Option<&LitStr>, mistakes: &mut Mistakes) -> Option<Template> {
    literal.and_then(|message| Template::from_syn(message, Purpose::Message, mistakes))
}

fn spanned(text: &LitStr) -> Spanned<String> {
    Spanned { value: text.value(), place: Place::from(text.span()) }
}
