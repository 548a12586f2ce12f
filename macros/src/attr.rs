//! The attribute's options: which arguments there are, and the form of their values.

use proc_macro2::TokenStream;
use syn::{Expr, LitInt, LitStr};

use crate::argument::{Argument, Arguments};
use crate::diagnostic::{Mistakes, Place};

const COUNT: &str = "count = 10";
const PER: &str = r#"per = "60s""#;

/// Everything the attribute says, as far as it could be read.
pub(crate) struct Options {
    pub(crate) rules: Vec<RuleOptions>,
    pub(crate) prevent_duplicate: Option<Place>,
    pub(crate) name: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) limiter: Option<Expr>,
    /// Whether there is nothing else that could not be read.
    pub(crate) complete: bool,
}

/// One `rule(...)`, as far as it could be read.
pub(crate) struct RuleOptions {
    pub(crate) place: Place,
    pub(crate) count: Option<LitInt>,
    pub(crate) per: Option<LitStr>,
}

impl Options {
    pub(crate) fn parse(attribute: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut arguments = Arguments::parse(attribute, mistakes);
        let rules = arguments.take_all("rule");
        Self {
            rules: rules.into_iter().map(|rule| RuleOptions::read(rule, mistakes)).collect(),
            prevent_duplicate: arguments.flag("prevent_duplicate", mistakes),
            name: arguments.text("name", r#"name = "sms.send""#, mistakes),
            key: arguments.text("key", r#"key = "sms:{phone}""#, mistakes),
            limiter: arguments.expression("limiter", "limiter = self.limiter", mistakes),
            complete: arguments.finish(mistakes),
        }
    }
}

impl RuleOptions {
    fn read(rule: Argument, mistakes: &mut Mistakes) -> Self {
        let place = rule.place();
        let list = rule.list(r#"rule(count = 10, per = "60s")"#);
        let Some(mut list) = mistakes.keep(list) else {
            return Self { place, count: None, per: None };
        };
        list.require("count", COUNT, place);
        list.require("per", PER, place);
        let count = list.integer("count", COUNT, mistakes);
        let per = list.text("per", PER, mistakes);
        list.finish(mistakes);
        Self { place, count, per }
    }
}
