//! What the attribute means: a policy, whom it counts, and who decides.

use std::time::Duration;

use syn::{Expr, LitInt, LitStr};
use tallygate_rules::{DUPLICATE_PER, Rule, parse_duration};

use crate::attr::{Options, RuleOptions};
use crate::diagnostic::{Mistakes, Place, Spanned, error};
use crate::template::Template;

/// A policy as the attribute describes it.
pub(crate) struct Model {
    pub(crate) name: Option<Spanned<String>>,
    /// Its rules, that of duplicates in front.
    pub(crate) rules: Vec<RuleModel>,
    pub(crate) key: Option<Template>,
    pub(crate) limiter: Option<Expr>,
    /// Whether nothing was written that could not be read, and might have been a rule.
    pub(crate) complete: bool,
}

/// A rule, and where its parts are written.
pub(crate) struct RuleModel {
    pub(crate) rule: Rule,
    /// Whether all its parts could be read. In place of the others stand ones that are sound.
    pub(crate) complete: bool,
    pub(crate) place: Place,
    pub(crate) count: Place,
    pub(crate) per: Place,
}

impl Model {
    pub(crate) fn from_syn(options: Options, mistakes: &mut Mistakes) -> Self {
        let duplicate = options.prevent_duplicate.map(RuleModel::duplicate);
        let limits = options.rules.iter().map(|rule| RuleModel::from_syn(rule, mistakes));
        Self {
            rules: duplicate.into_iter().chain(limits).collect(),
            name: options.name.as_ref().map(spanned),
            key: options.key.and_then(|key| mistakes.keep(Template::from_syn(&key))),
            limiter: options.limiter,
            complete: options.complete,
        }
    }
}

impl RuleModel {
    fn duplicate(place: Place) -> Self {
        Self { rule: Rule::duplicate(DUPLICATE_PER), complete: true, place, count: place, per: place }
    }

    fn from_syn(options: &RuleOptions, mistakes: &mut Mistakes) -> Self {
        let place = options.place;
        let count = options.count.as_ref().map(number);
        let per = options.per.as_ref().and_then(|per| mistakes.keep(duration(per)));
        Self {
            rule: Rule::sliding_window(count.unwrap_or(1), per.unwrap_or(Duration::from_secs(1))),
            complete: count.is_some() && per.is_some(),
            place,
            count: options.count.as_ref().map_or(place, |count| Place::from(count.span())),
            per: options.per.as_ref().map_or(place, |per| Place::from(per.span())),
        }
    }
}

/// One that is too large for the type is too large for a rule, which says so better.
fn number(literal: &LitInt) -> u64 {
    literal.base10_parse().unwrap_or(u64::MAX)
}

fn duration(literal: &LitStr) -> syn::Result<Duration> {
    let read = parse_duration(&literal.value());
    read.map_err(|why| error(literal.span(), format_args!("`per` {why}")))
}

fn spanned(text: &LitStr) -> Spanned<String> {
    Spanned { value: text.value(), place: Place::from(text.span()) }
}
