//! What the attribute means: a policy, whom it counts, and who decides.

use syn::{Expr, LitStr};
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
    /// Whether all of the attribute could be read.
    pub(crate) complete: bool,
}

/// A rule, and where its parts are written.
pub(crate) struct RuleModel {
    pub(crate) rule: Rule,
    pub(crate) place: Place,
    pub(crate) count: Place,
    pub(crate) per: Place,
}

impl Model {
    pub(crate) fn from_syn(options: Options, mistakes: &mut Mistakes) -> Self {
        let duplicate = options.prevent_duplicate.map(RuleModel::duplicate);
        let limits = options.rules.iter().filter_map(|rule| mistakes.keep(RuleModel::from_syn(rule)));
        let rules: Vec<_> = duplicate.into_iter().chain(limits).collect();
        let written = options.rules.len() + usize::from(options.prevent_duplicate.is_some());
        Self {
            complete: options.complete && rules.len() == written,
            rules,
            name: options.name.as_ref().map(spanned),
            key: options.key.and_then(|key| mistakes.keep(Template::from_syn(&key))),
            limiter: options.limiter,
        }
    }
}

impl RuleModel {
    fn duplicate(place: Place) -> Self {
        Self { rule: Rule::duplicate(DUPLICATE_PER), place, count: place, per: place }
    }

    fn from_syn(options: &RuleOptions) -> syn::Result<Self> {
        let per = Place::from(options.per.span());
        let duration = parse_duration(&options.per.value()).map_err(|why| error(per, format_args!("`per` {why}")))?;
        // A number that is too large for the type is too large for a rule, which says so better.
        let count = options.count.base10_parse().unwrap_or(u64::MAX);
        let rule = Rule::sliding_window(count, duration);
        Ok(Self { rule, place: options.place, count: Place::from(options.count.span()), per })
    }
}

fn spanned(text: &LitStr) -> Spanned<String> {
    Spanned { value: text.value(), place: Place::from(text.span()) }
}
