//! The models of what denies calls: `rule(...)`, `prevent_duplicate`, `concurrency(...)`, and `ban(...)`.

use syn::{Expr, ExprLit, Lit};
use tallygate_rules::{Ban, DUPLICATE_PER, MAX_LEASE, MAX_PER, Role, Rule, TemplateUse, read_limit};

use crate::attr::{Amount, Argument, Arguments, WrittenList, number};
use crate::diagnostic::Diagnostics;
use crate::template::SpannedTemplate;

/// Arguments that apply to the whole call, and so to all rules.
pub(super) const CALL_ARGUMENTS: [&str; 21] = [
    "cost",
    "allow_zero_cost",
    "wait",
    "refund_if",
    "refund_key",
    "settle",
    "until",
    "skip_if",
    "limiter",
    "on_outage",
    "deadline",
    "warn_at",
    "prefetch",
    "pause",
    "longest_pause",
    "pause_key",
    "ban",
    "prevent_duplicate",
    "reject",
    "check_fn",
    "openapi",
];

const COUNT: &str = "count = 10";
const PER: &str = r#"per = "60s""#;
const LIMIT: &str = "limit = 10";
const LEASE: &str = r#"lease = "30s""#;

/// A rule, and where its arguments are written.
pub(crate) struct RuleModel {
    pub(crate) rule: Rule,
    /// The expression of the count, if each call evaluates it.
    pub(crate) count: Option<Expr>,
    /// The key of the rule's own subject, if it has one.
    pub(crate) key: Option<SpannedTemplate>,
    pub(crate) message: Option<SpannedTemplate>,
    /// The condition on the result by which the call's hit is removed from this rule alone.
    pub(crate) release_if: Option<Expr>,
    /// A valid value stands for each argument that could not be read.
    pub(crate) written: WrittenList,
}

impl RuleModel {
    /// Returns whether the rule counts what calls cost in calls.
    pub(crate) fn counts_costs(&self) -> bool {
        self.rule.role() == Role::Limit && self.rule.unit().is_none()
    }

    /// Reads `rule(...)`.
    pub(super) fn limit(argument: Argument, diagnostics: &mut Diagnostics) -> Self {
        let mut list = Arguments::open(argument, diagnostics);
        list.require("count", COUNT);
        if !list.has("cron") {
            list.require("per", PER);
        }
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the rule");
        let in_concurrency =
            r#"is no argument of a rule; write `concurrency(limit = 10, lease = "30s")` beside the rule"#;
        list.refuse(&["concurrency", "lease"], in_concurrency);
        let count = list.amount("count", [COUNT, "count = user.calls()"]);
        let is_shadow = list.flag("shadow").is_some();
        let rule = read_limit(&mut list);
        let rule = if is_shadow { rule.shadow() } else { rule };
        Self::finish(list, rule, count, r#"name = "daily""#)
    }

    pub(super) fn take_duplicate(arguments: &mut Arguments<'_>) -> Option<Self> {
        let argument = arguments.take("prevent_duplicate")?;
        let example = duplicate_example(argument.single_value());
        let mut list = Arguments::open_optional(argument, &example, arguments.diagnostics);
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of `prevent_duplicate`");
        list.refuse(&["shadow"], "is for a `rule`, or for the whole call; write it outside of `prevent_duplicate`");
        list.refuse(&["unit"], "is for a `rule`, and `prevent_duplicate` counts calls; remove it");
        let per = list.duration("per", r#"per = "5s""#);
        Some(Self {
            rule: Rule::duplicate(per.map_or(DUPLICATE_PER, |per| per.value)),
            count: None,
            key: list.template("key", r#"key = "{order.id}""#, TemplateUse::Key),
            message: list.message(TemplateUse::Message),
            release_if: list.function("release_if", "release_if = Result::is_err"),
            written: list.finish(),
        })
    }

    /// Reads `concurrency(...)`.
    pub(super) fn concurrency(argument: Argument, diagnostics: &mut Diagnostics) -> Self {
        let mut list = Arguments::open(argument, diagnostics);
        list.require("limit", LIMIT);
        list.require("lease", LEASE);
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of `concurrency`");
        list.refuse(&["shadow"], "is for a `rule`, or for the whole call; write it outside of `concurrency`");
        list.refuse(&["unit"], "is for a `rule`, and `concurrency` counts calls; remove it");
        let limit = list.amount("limit", [LIMIT, "limit = plan.calls()"]);
        let lease = list.duration("lease", LEASE).map_or(MAX_LEASE, |lease| lease.value);
        Self::finish(list, Rule::concurrency(0, lease), limit, r#"name = "exports""#)
    }

    /// Reads the arguments that any rule can have, and adds them to the rule.
    fn finish(mut list: Arguments<'_>, rule: Rule, count: Option<Amount>, name: &str) -> Self {
        let key = list.template("key", r#"key = "{ip}""#, TemplateUse::Key);
        let rule = match list.text("name", name) {
            Some(name) => rule.named(name.value),
            None => rule,
        };
        let message = list.message(TemplateUse::Message);
        let (rule, count) = match count {
            Some(Amount::Literal(count)) => (rule.with_count(number(&count)), None),
            Some(Amount::Expression(count)) => (rule.varying(), Some(count)),
            // The count could not be read, so it is treated as varying: a varying count is compared with no other.
            None => (rule.varying(), None),
        };
        Self { rule, count, key, message, release_if: None, written: list.finish() }
    }
}

/// Returns `prevent_duplicate` with the argument that the value was probably meant for.
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

/// `ban(...)`.
pub(crate) struct BanModel {
    pub(crate) ban: Ban,
    pub(crate) message: Option<SpannedTemplate>,
    pub(crate) written: WrittenList,
}

impl BanModel {
    pub(super) fn take(arguments: &mut Arguments<'_>) -> Option<Self> {
        let [denials, within, duration] = ["denials = 20", r#"within = "10m""#, r#"duration = "1h""#];
        let argument = arguments.take("ban")?;
        let mut list = Arguments::open(argument, arguments.diagnostics);
        list.require("denials", denials);
        list.require("within", within);
        list.require("duration", duration);
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the ban");
        list.refuse(&["shadow"], "is for a `rule`, or for the whole call; write it outside of the ban");
        list.refuse(&["unit"], "is for a `rule`, and a ban counts denials; remove it");
        list.refuse(&["key"], "of a ban is that of the function; write it outside of the ban");
        let denials = list.integer("denials", denials).unwrap_or(1);
        // If a duration cannot be read, the longest one stands for it. It is valid beside any rule, so only the
        // unreadable duration is reported.
        let mut read = |name, example| list.duration(name, example).map_or(MAX_PER, |duration| duration.value);
        let ban = Ban::new(denials, read("within", within), read("duration", duration));
        let message = list.message(TemplateUse::BanMessage);
        Some(Self { ban, message, written: list.finish() })
    }
}
