//! The options of the attribute: the arguments that exist, and the form of their values.

use proc_macro2::{Ident, TokenStream};
use syn::{Expr, ExprLit, ExprPath, ExprUnary, Lit, LitInt, LitStr, Path, UnOp};

use crate::argument::{Argument, Arguments};
use crate::diagnostic::{Mistakes, Place, error};

const COUNT: &str = "count = 10";
const PER: &str = r#"per = "60s""#;
const MESSAGE: &str = r#"message = "try again in {@retry_after}""#;

/// Arguments of rules only.
const RULE_ARGUMENTS: [&str; 8] = ["count", "per", "algorithm", "capacity", "initial", "reset_after", "cron", "tz"];

/// Arguments of bans only.
const BAN_ARGUMENTS: [&str; 3] = ["denials", "within", "duration"];

/// Arguments that apply to the whole call, and so to all rules.
const CALL_ARGUMENTS: [&str; 7] = ["cost", "allow_zero_cost", "wait", "refund_if", "skip_if", "shadow", "limiter"];

/// All options. One that could not be read is left out.
pub(crate) struct Options {
    pub(crate) rules: Vec<RuleOptions>,
    pub(crate) prevent_duplicate: Option<DuplicateOptions>,
    pub(crate) name: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    pub(crate) ban: Option<BanOptions>,
    /// `policy`: a policy that is built elsewhere.
    pub(crate) policy: Option<Expr>,
    pub(crate) subjects: Vec<SubjectOptions>,
    pub(crate) cost: Option<Amount>,
    /// Where it is written.
    pub(crate) allow_zero_cost: Option<Place>,
    pub(crate) wait: Option<LitStr>,
    pub(crate) refund_if: Option<Expr>,
    pub(crate) skip_if: Option<Expr>,
    /// The place of `shadow`.
    pub(crate) shadow: Option<Place>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    /// `check_fn`: the name of the companion function.
    pub(crate) check_fn: Option<Ident>,
    /// `crate`: the path of the runtime.
    pub(crate) runtime: Option<Path>,
    /// Whether all arguments of the attribute itself are known and in their place.
    pub(crate) complete: bool,
}

/// One `rule(...)`. An option that could not be read is left out.
pub(crate) struct RuleOptions {
    pub(crate) place: Place,
    pub(crate) algorithm: Option<LitStr>,
    pub(crate) count: Option<Amount>,
    pub(crate) per: Option<LitStr>,
    pub(crate) capacity: Option<LitInt>,
    pub(crate) initial: Option<LitInt>,
    pub(crate) reset_after: Option<LitStr>,
    pub(crate) cron: Option<LitStr>,
    pub(crate) tz: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    /// Whether no option is missing, and each could be read.
    pub(crate) complete: bool,
}

/// `prevent_duplicate`, alone or with arguments.
pub(crate) struct DuplicateOptions {
    pub(crate) place: Place,
    pub(crate) per: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    /// Whether all its arguments are known and could be read.
    pub(crate) complete: bool,
}

/// `subject("label", "key")`.
pub(crate) struct SubjectOptions {
    pub(crate) place: Place,
    pub(crate) label: LitStr,
    pub(crate) key: LitStr,
}

/// `ban(...)`. An option that could not be read is left out.
pub(crate) struct BanOptions {
    pub(crate) place: Place,
    pub(crate) denials: Option<LitInt>,
    pub(crate) within: Option<LitStr>,
    pub(crate) duration: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
}

/// The number of calls that a rule admits, or that this call counts as.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "spans are larger in the tests, which read where they are")]
pub(crate) enum Amount {
    /// A number that is known at compile time.
    Literal(LitInt),
    /// An expression that every call evaluates.
    Expression(Expr),
}

impl Options {
    pub(crate) fn parse(attribute: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut arguments = Arguments::parse(attribute, mistakes);
        let rules = arguments.take_all("rule");
        let in_rule = r#"belongs in a rule, like `rule(count = 10, per = "60s")`"#;
        let in_ban = r#"belongs in a ban, like `ban(denials = 20, within = "10m", duration = "1h")`"#;
        let in_place = arguments.refuse(&RULE_ARGUMENTS, in_rule, mistakes);
        let in_place = arguments.refuse(&BAN_ARGUMENTS, in_ban, mistakes) && in_place;
        let names_policy = arguments.has("policy");
        let policy = value("policy", ["policy = SMS_POLICY", "Policy"], &mut arguments, mistakes);
        let in_place = in_place && names_policy == policy.is_some();
        Self {
            rules: rules.into_iter().map(|rule| RuleOptions::read(rule, mistakes)).collect(),
            prevent_duplicate: DuplicateOptions::take(&mut arguments, mistakes),
            name: arguments.text("name", r#"name = "sms.send""#, mistakes),
            key: arguments.template("key", r#"key = "sms:{phone}""#, mistakes),
            message: arguments.template("message", MESSAGE, mistakes),
            ban: BanOptions::take(&mut arguments, mistakes),
            policy,
            subjects: SubjectOptions::take_all(&mut arguments, mistakes),
            cost: amount("cost", ["cost = 3", "cost = items.len() as u64"], &mut arguments, mistakes),
            allow_zero_cost: arguments.flag("allow_zero_cost", mistakes),
            wait: arguments.text("wait", r#"wait = "2s""#, mistakes),
            refund_if: function("refund_if", "refund_if = Result::is_err", &mut arguments, mistakes),
            skip_if: arguments.expression("skip_if", "skip_if = user.is_admin()", mistakes),
            shadow: arguments.flag("shadow", mistakes),
            reject: function("reject", "reject = ApiError::limited", &mut arguments, mistakes),
            limiter: value("limiter", ["limiter = self.limiter", "Limiter"], &mut arguments, mistakes),
            check_fn: identifier("check_fn", "check_fn = send_code_limit", &mut arguments, mistakes),
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
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the rule", mistakes);
        let before = mistakes.number();
        let mut options = Self {
            complete: false,
            place,
            algorithm: list.text("algorithm", r#"algorithm = "token_bucket""#, mistakes),
            count: amount("count", [COUNT, "count = user.calls()"], &mut list, mistakes),
            per: list.text("per", PER, mistakes),
            capacity: list.integer("capacity", "capacity = 100", mistakes),
            initial: list.integer("initial", "initial = 3", mistakes),
            reset_after: list.text("reset_after", r#"reset_after = "10s""#, mistakes),
            cron: list.text("cron", r#"cron = "0 0 6 * * *""#, mistakes),
            tz: list.text("tz", r#"tz = "Asia/Shanghai""#, mistakes),
            key: list.template("key", r#"key = "{ip}""#, mistakes),
            name: list.text("name", r#"name = "daily""#, mistakes),
            message: list.template("message", MESSAGE, mistakes),
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
        let example = duplicate_example(argument.single());
        let list = mistakes.keep(argument.flag_or_list(&example));
        let read = list.is_some();
        let mut list = list.unwrap_or_default();
        let per = list.text("per", r#"per = "5s""#, mistakes);
        let key = list.template("key", r#"key = "{order.id}""#, mistakes);
        let message = list.template("message", MESSAGE, mistakes);
        Some(Self { place, per, key, message, complete: list.finish(mistakes) && read })
    }
}

impl SubjectOptions {
    fn take_all(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Vec<Self> {
        let read = |argument: Argument| {
            let place = argument.place();
            let texts = argument.two_texts("a label and a key", r#"subject("network", "{ip:subnet}")"#);
            texts.map(|[label, key]| Self { place, label, key })
        };
        arguments.take_all("subject").into_iter().filter_map(|argument| mistakes.keep(read(argument))).collect()
    }
}

impl BanOptions {
    fn take(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Self> {
        let [denials, within, duration] = ["denials = 20", r#"within = "10m""#, r#"duration = "1h""#];
        let argument = arguments.take("ban", mistakes)?;
        let place = argument.place();
        let mut list = mistakes.keep(argument.list(&format!("ban({denials}, {within}, {duration})")))?;
        for (name, example) in BAN_ARGUMENTS.into_iter().zip([denials, within, duration]) {
            list.require(name, example, place);
        }
        let options = Self {
            place,
            denials: list.integer("denials", denials, mistakes),
            within: list.text("within", within, mistakes),
            duration: list.text("duration", duration, mistakes),
            message: list.template("message", MESSAGE, mistakes),
        };
        list.finish(mistakes);
        Some(options)
    }
}

/// Returns `prevent_duplicate` with the argument that its value probably is.
fn duplicate_example(value: Option<&Expr>) -> String {
    match value {
        Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => {
            let text = text.value();
            let argument = if text.contains('{') { "key" } else { "per" };
            format!("prevent_duplicate({argument} = {text:?})")
        }
        _ => r#"prevent_duplicate(per = "5s")"#.to_owned(),
    }
}

/// Takes a whole number, or an expression.
fn amount(
    name: &'static str,
    [literal, expression]: [&str; 2],
    arguments: &mut Arguments,
    mistakes: &mut Mistakes,
) -> Option<Amount> {
    let amount = arguments.expression(name, literal, mistakes)?;
    match &amount {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => {
            return Some(Amount::Literal(number.clone()));
        }
        Expr::Lit(_) | Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. }) => {}
        _ => return Some(Amount::Expression(amount)),
    }
    let message =
        format!("`{name}` must be a whole number, like `{literal}`, or a `u64` expression, like `{expression}`");
    mistakes.report(Place::of(&amount), message);
    None
}

/// Takes an expression of a type that has no literals.
fn value(
    name: &'static str,
    [example, type_name]: [&str; 2],
    arguments: &mut Arguments,
    mistakes: &mut Mistakes,
) -> Option<Expr> {
    let value = arguments.expression(name, example, mistakes)?;
    if !matches!(value, Expr::Lit(_)) {
        return Some(value);
    }
    mistakes.report(Place::of(&value), format_args!("`{name}` must be a `{type_name}`, like `{example}`"));
    None
}

/// Takes a path, a closure, or another expression that may be a function.
fn function(name: &'static str, example: &str, arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Expr> {
    let value = arguments.expression(name, example, mistakes)?;
    match value {
        Expr::Lit(_) | Expr::MethodCall(_) | Expr::Macro(_) | Expr::Binary(_) | Expr::Unary(_) => {
            mistakes
                .report(Place::of(&value), format_args!("`{name}` must be a function or a closure, like `{example}`"));
            None
        }
        _ => Some(value),
    }
}

/// Takes `name = identifier`.
fn identifier(name: &'static str, example: &str, arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Ident> {
    let value = arguments.expression(name, example, mistakes)?;
    let identifier = match &value {
        Expr::Path(ExprPath { qself: None, path, .. }) => path.get_ident().cloned(),
        _ => None,
    };
    if identifier.is_none() {
        mistakes.report(Place::of(&value), format_args!("`{name}` is the name of a function, like `{example}`"));
    }
    identifier
}

/// Takes `crate = ::path`.
fn runtime(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Path> {
    let example = "crate = ::tallygate";
    match arguments.expression("crate", example, mistakes)? {
        Expr::Path(ExprPath { qself: None, path, .. }) => Some(path),
        other => {
            mistakes.add(error(Place::of(&other), format_args!("`crate` must be a path, like `{example}`")));
            None
        }
    }
}
