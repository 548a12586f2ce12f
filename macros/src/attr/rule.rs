//! The options of a rule.

use syn::{LitInt, LitStr};

use crate::attr::argument::Argument;
use crate::attr::arguments::Arguments;
use crate::attr::value::{Amount, MESSAGE, amount};
use crate::diagnostic::{Diagnostics, SpanRange};

const COUNT: &str = "count = 10";
const PER: &str = r#"per = "60s""#;

/// Arguments of rules only.
pub(super) const RULE_ARGUMENTS: [&str; 8] =
    ["count", "per", "algorithm", "capacity", "initial", "reset_after", "cron", "tz"];

/// Arguments that apply to the whole call, and so to all rules.
pub(super) const CALL_ARGUMENTS: [&str; 16] = [
    "cost",
    "allow_zero_cost",
    "wait",
    "refund_if",
    "settle",
    "skip_if",
    "shadow",
    "limiter",
    "on_outage",
    "deadline",
    "warn_at",
    "ban",
    "prevent_duplicate",
    "reject",
    "check_fn",
    "openapi",
];

const CONCURRENCY: [&str; 2] = ["concurrency", "lease"];
const IN_CONCURRENCY: &str =
    r#"is no argument of a rule; write `concurrency(limit = 10, lease = "30s")` beside the rule"#;

/// One `rule(...)`. An option that could not be read is left out.
pub(crate) struct RuleOptions {
    pub(crate) span: SpanRange,
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

impl RuleOptions {
    pub(super) fn read(rule: Argument, diagnostics: &mut Diagnostics) -> Self {
        let span = rule.span();
        let list = diagnostics.ok_or_report(rule.list(r#"rule(count = 10, per = "60s")"#));
        let unread = list.is_none();
        let mut list = Arguments::from(list.unwrap_or_default());
        if !unread {
            list.require("count", COUNT, span);
            if !list.has("cron") {
                list.require("per", PER, span);
            }
        }
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the rule", diagnostics);
        list.refuse(&CONCURRENCY, IN_CONCURRENCY, diagnostics);
        let before = diagnostics.count();
        let mut options = Self {
            complete: false,
            span,
            algorithm: list.text("algorithm", r#"algorithm = "token_bucket""#, diagnostics),
            count: amount("count", [COUNT, "count = user.calls()"], &mut list, diagnostics),
            per: list.text("per", PER, diagnostics),
            capacity: list.integer("capacity", "capacity = 100", diagnostics),
            initial: list.integer("initial", "initial = 3", diagnostics),
            reset_after: list.text("reset_after", r#"reset_after = "10s""#, diagnostics),
            cron: list.text("cron", r#"cron = "0 0 6 * * *""#, diagnostics),
            tz: list.text("tz", r#"tz = "Asia/Shanghai""#, diagnostics),
            key: list.template("key", r#"key = "{ip}""#, diagnostics),
            name: list.text("name", r#"name = "daily""#, diagnostics),
            message: list.template("message", MESSAGE, diagnostics),
        };
        options.complete = diagnostics.count() == before && options.count.is_some();
        options.complete &= options.per.is_some() || options.cron.is_some();
        list.finish(diagnostics);
        options
    }
}
