//! The attribute's options: which arguments there are, and the form of their values.

use proc_macro2::TokenStream;
use syn::{Expr, LitInt, LitStr};

use crate::argument::{Argument, Arguments};
use crate::diagnostic::{Mistakes, Place};

/// Everything the attribute says.
pub(crate) struct Options {
    pub(crate) rules: Vec<RuleOptions>,
    pub(crate) prevent_duplicate: Option<Place>,
    pub(crate) name: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) limiter: Option<Expr>,
    /// Whether all of it could be read.
    pub(crate) complete: bool,
}

/// One `rule(...)`.
pub(crate) struct RuleOptions {
    pub(crate) place: Place,
    pub(crate) count: LitInt,
    pub(crate) per: LitStr,
}

impl Options {
    pub(crate) fn parse(attribute: TokenStream, mistakes: &mut Mistakes) -> Option<Self> {
        let read = Arguments::parse(attribute, mistakes);
        let mut arguments = mistakes.keep(read)?;
        let rules = arguments.take_all("rule");
        let written = rules.len();
        let rules: Vec<_> = rules.into_iter().filter_map(|rule| RuleOptions::read(rule, mistakes)).collect();
        let prevent_duplicate = arguments.take("prevent_duplicate", mistakes).map(|flag| {
            let place = flag.place();
            mistakes.keep(flag.flag());
            place
        });
        let name = arguments.take("name", mistakes).and_then(|name| mistakes.keep(name.text(r#"name = "sms.send""#)));
        let key = arguments.take("key", mistakes).and_then(|key| mistakes.keep(key.text(r#"key = "sms:{phone}""#)));
        let limiter = arguments
            .take("limiter", mistakes)
            .and_then(|limiter| mistakes.keep(limiter.expression("limiter = self.limiter")));
        let complete = rules.len() == written && arguments.finish(mistakes);
        Some(Self { rules, prevent_duplicate, name, key, limiter, complete })
    }
}

impl RuleOptions {
    fn read(rule: Argument, mistakes: &mut Mistakes) -> Option<Self> {
        let place = rule.place();
        let list = rule.list(r#"rule(count = 10, per = "60s")"#);
        let mut list = mistakes.keep(list)?;
        let count = list.take("count", mistakes);
        let per = list.take("per", mistakes);
        // What is missing may be what was not understood.
        if list.finish(mistakes) {
            require(count.as_ref(), place, "count", "count = 10", mistakes);
            require(per.as_ref(), place, "per", r#"per = "60s""#, mistakes);
        }
        let count = count.and_then(|count| mistakes.keep(count.integer("count = 10")));
        let per = per.and_then(|per| mistakes.keep(per.text(r#"per = "60s""#)));
        Some(Self { place, count: count?, per: per? })
    }
}

fn require(argument: Option<&Argument>, place: Place, name: &str, example: &str, mistakes: &mut Mistakes) {
    if argument.is_none() {
        mistakes.report(place, format_args!("`{name}` is missing; write it, like `{example}`"));
    }
}
