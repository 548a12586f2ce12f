//! The attribute's options: which arguments there are, and the form of their values.

use proc_macro2::TokenStream;
use syn::{Expr, ExprLit, ExprPath, ExprUnary, Lit, LitInt, LitStr, Path, UnOp};

use crate::argument::{Argument, Arguments};
use crate::diagnostic::{Mistakes, Place, error};

const COUNT: &str = "count = 10";
const PER: &str = r#"per = "60s""#;
const MESSAGE: &str = r#"message = "try again in {@retry_after}""#;

/// What only rules have.
const OF_RULES: [&str; 8] = ["count", "per", "algorithm", "capacity", "initial", "reset_after", "cron", "tz"];

/// Everything the attribute says, as far as it could be read.
pub(crate) struct Options {
    pub(crate) rules: Vec<RuleOptions>,
    pub(crate) prevent_duplicate: Option<DuplicateOptions>,
    pub(crate) name: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    /// `crate`: the path of the runtime.
    pub(crate) runtime: Option<Path>,
    /// Whether there is nothing else that could not be read.
    pub(crate) complete: bool,
}

/// One `rule(...)`, as far as it could be read.
pub(crate) struct RuleOptions {
    pub(crate) place: Place,
    pub(crate) algorithm: Option<LitStr>,
    pub(crate) count: Option<Count>,
    pub(crate) per: Option<LitStr>,
    pub(crate) capacity: Option<LitInt>,
    pub(crate) initial: Option<LitInt>,
    pub(crate) reset_after: Option<LitStr>,
    pub(crate) cron: Option<LitStr>,
    pub(crate) tz: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    /// Whether nothing is missing and nothing could not be read.
    pub(crate) complete: bool,
}

/// `prevent_duplicate`, alone or with arguments.
pub(crate) struct DuplicateOptions {
    pub(crate) place: Place,
    pub(crate) per: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    /// Whether its arguments could be read.
    pub(crate) complete: bool,
}

/// How many calls a rule admits.
#[derive(Clone)]
pub(crate) enum Count {
    /// A number that is known when compiling.
    Literal(LitInt),
    /// An expression that every call evaluates.
    Expression(Expr),
}

impl Options {
    pub(crate) fn parse(attribute: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut arguments = Arguments::parse(attribute, mistakes);
        let rules = arguments.take_all("rule");
        let belongs = r#"belongs into a rule, like `rule(count = 10, per = "60s")`"#;
        let in_place = arguments.refuse(&OF_RULES, belongs, mistakes);
        Self {
            rules: rules.into_iter().map(|rule| RuleOptions::read(rule, mistakes)).collect(),
            prevent_duplicate: DuplicateOptions::take(&mut arguments, mistakes),
            name: arguments.text("name", r#"name = "sms.send""#, mistakes),
            key: arguments.text("key", r#"key = "sms:{phone}""#, mistakes),
            message: arguments.text("message", MESSAGE, mistakes),
            reject: arguments.expression("reject", "reject = ApiError::limited", mistakes),
            limiter: arguments.expression("limiter", "limiter = self.limiter", mistakes),
            runtime: runtime(&mut arguments, mistakes),
            complete: arguments.finish(mistakes) && in_place,
        }
    }
}

impl RuleOptions {
    fn read(rule: Argument, mistakes: &mut Mistakes) -> Self {
        let place = rule.place();
        let list = mistakes.keep(rule.list(r#"rule(count = 10, per = "60s")"#));
        let unread = list.is_none();
        let mut list = list.unwrap_or_default();
        if !unread {
            list.require("count", COUNT, place);
            if !list.has("cron") {
                list.require("per", PER, place);
            }
        }
        let before = mistakes.number();
        let mut options = Self {
            complete: false,
            place,
            algorithm: list.text("algorithm", r#"algorithm = "token_bucket""#, mistakes),
            count: count(&mut list, mistakes),
            per: list.text("per", PER, mistakes),
            capacity: list.integer("capacity", "capacity = 100", mistakes),
            initial: list.integer("initial", "initial = 3", mistakes),
            reset_after: list.text("reset_after", r#"reset_after = "10s""#, mistakes),
            cron: list.text("cron", r#"cron = "0 0 6 * * *""#, mistakes),
            tz: list.text("tz", r#"tz = "Asia/Shanghai""#, mistakes),
            name: list.text("name", r#"name = "daily""#, mistakes),
            message: list.text("message", MESSAGE, mistakes),
        };
        options.complete = mistakes.number() == before && options.count.is_some();
        options.complete &= options.per.is_some() || options.cron.is_some();
        list.finish(mistakes);
        options
    }
}

impl DuplicateOptions {
    fn take(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Self> {
        let argument = arguments.take("prevent_duplicate", mistakes)?;
        let place = argument.place();
        let list = mistakes.keep(argument.flag_or_list(r#"prevent_duplicate(per = "5s")"#));
        let read = list.is_some();
        let mut list = list.unwrap_or_default();
        let (per, message) = (list.text("per", r#"per = "5s""#, mistakes), list.text("message", MESSAGE, mistakes));
        Some(Self { place, per, message, complete: list.finish(mistakes) && read })
    }
}

/// Takes `count = 10`, or an expression.
fn count(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Count> {
    let count = arguments.expression("count", COUNT, mistakes)?;
    match &count {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => {
            return Some(Count::Literal(number.clone()));
        }
        Expr::Lit(_) | Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. }) => {}
        _ => return Some(Count::Expression(count)),
    }
    let message = "`count` is a whole number, like `count = 10`, or a `u64` made of the arguments, like \
                   `count = user.calls()`";
    mistakes.report(Place::of(&count), message);
    None
}

/// Takes `crate = ::path`.
fn runtime(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Path> {
    let example = "crate = ::tallygate";
    match arguments.expression("crate", example, mistakes)? {
        Expr::Path(ExprPath { qself: None, path, .. }) => Some(path),
        other => {
            mistakes.add(error(Place::of(&other), format_args!("`crate` is a path, like `{example}`")));
            None
        }
    }
}
