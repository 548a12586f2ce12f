//! What the attribute means: a policy, whom it counts, who decides, and what the caller is told.

use syn::{Expr, LitStr, Path};

use crate::attr::Options;
use crate::diagnostic::{Mistakes, Place, Spanned};
use crate::rule::RuleModel;
use crate::template::{Purpose, Template};

/// A policy as the attribute describes it.
pub(crate) struct Model {
    pub(crate) name: Option<Spanned<String>>,
    /// Its rules, that of duplicates in front.
    pub(crate) rules: Vec<RuleModel>,
    pub(crate) key: Option<Template>,
    /// What the caller is told where the rule says nothing.
    pub(crate) message: Option<Template>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    pub(crate) runtime: Option<Path>,
    /// Whether nothing was written that could not be read, and might have been a rule.
    pub(crate) complete: bool,
}

impl Model {
    pub(crate) fn from_syn(options: Options, mistakes: &mut Mistakes) -> Self {
        let duplicate = options.prevent_duplicate.map(|duplicate| RuleModel::duplicate(&duplicate, mistakes));
        let limits = options.rules.into_iter().map(|rule| RuleModel::from_syn(rule, mistakes));
        Self {
            rules: duplicate.into_iter().chain(limits).collect(),
            name: options.name.as_ref().map(spanned),
            key: options.key.and_then(|key| Template::from_syn(&key, Purpose::Key, mistakes)),
            message: message(options.message.as_ref(), mistakes),
            reject: options.reject,
            limiter: options.limiter,
            runtime: options.runtime,
            complete: options.complete,
        }
    }

    /// Returns the messages: those of rules, each with the position of its rule, and that of the policy.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Option<usize>, &Template)> {
        let rules = self.rules.iter().enumerate();
        let told = rules.filter_map(|(index, rule)| Some((Some(index), rule.message.as_ref()?)));
        told.chain(self.message.iter().map(|message| (None, message)))
    }
}

pub(crate) fn message(literal: Option<&LitStr>, mistakes: &mut Mistakes) -> Option<Template> {
    literal.and_then(|message| Template::from_syn(message, Purpose::Message, mistakes))
}

fn spanned(text: &LitStr) -> Spanned<String> {
    Spanned { value: text.value(), place: Place::from(text.span()) }
}
