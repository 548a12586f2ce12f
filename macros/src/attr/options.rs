//! All options of the attribute.

use proc_macro2::{Ident, TokenStream};
use syn::{Expr, LitStr, Path};

use crate::attr::arguments::Arguments;
use crate::attr::ban::BanOptions;
use crate::attr::concurrency::ConcurrencyOptions;
use crate::attr::duplicate::{DUPLICATE_ARGUMENTS, DuplicateOptions};
use crate::attr::rule::{RULE_ARGUMENTS, RuleOptions};
use crate::attr::subject::SubjectOptions;
use crate::attr::value::{Amount, Fraction, MESSAGE, amount, fraction, function, identifier, path, value};
use crate::diagnostic::{Diagnostics, SpanRange};

/// An option that could not be read is left out.
pub(crate) struct Options {
    pub(crate) rules: Vec<RuleOptions>,
    pub(crate) prevent_duplicate: Option<DuplicateOptions>,
    pub(crate) concurrency: Vec<ConcurrencyOptions>,
    pub(crate) name: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    pub(crate) ban: Option<BanOptions>,
    pub(crate) on_outage: Option<LitStr>,
    pub(crate) deadline: Option<LitStr>,
    pub(crate) warn_at: Option<Fraction>,
    /// `policy`: a policy that is built elsewhere.
    pub(crate) policy: Option<Expr>,
    pub(crate) subjects: Vec<SubjectOptions>,
    pub(crate) cost: Option<Amount>,
    /// Where it is written.
    pub(crate) allow_zero_cost: Option<SpanRange>,
    pub(crate) wait: Option<LitStr>,
    pub(crate) refund_if: Option<Expr>,
    pub(crate) settle: Option<Expr>,
    pub(crate) skip_if: Option<Expr>,
    /// The place of `shadow`.
    pub(crate) shadow: Option<SpanRange>,
    pub(crate) reject: Option<Expr>,
    pub(crate) limiter: Option<Expr>,
    /// `check_fn`: the name of the companion function.
    pub(crate) check_fn: Option<Ident>,
    /// `openapi`: the name of the type with the responses.
    pub(crate) openapi: Option<Ident>,
    /// `crate`: the path of the runtime.
    pub(crate) runtime: Option<Path>,
    /// Whether all arguments of the attribute itself are known and in their place.
    pub(crate) complete: bool,
}

impl Options {
    pub(crate) fn parse(attribute: TokenStream, diagnostics: &mut Diagnostics) -> Self {
        let mut arguments = Arguments::parse(attribute, diagnostics);
        let rules = arguments.take_all("rule");
        let in_rule = r#"belongs in a rule, like `rule(count = 10, per = "60s")`"#;
        let in_ban = r#"belongs in a ban, like `ban(denials = 20, within = "10m", duration = "1h")`"#;
        let in_place = arguments.refuse(&RULE_ARGUMENTS, in_rule, diagnostics);
        let in_ban_or_rule = r#"belongs in a ban, like `ban(denials = 20, within = "10m", duration = "1h")`; the window of a rule is its `per`"#;
        let in_place = arguments.refuse(&["denials"], in_ban, diagnostics) && in_place;
        let in_place = arguments.refuse(&["within", "duration"], in_ban_or_rule, diagnostics) && in_place;
        let in_duplicate = "belongs in `prevent_duplicate`, like `prevent_duplicate(release_if = Result::is_err)`";
        let in_place = arguments.refuse(&DUPLICATE_ARGUMENTS, in_duplicate, diagnostics) && in_place;
        let in_place = ConcurrencyOptions::refuse_outside(&mut arguments, diagnostics) && in_place;
        let names_policy = arguments.has("policy");
        let policy = value("policy", ["policy = SMS_POLICY", "Policy"], &mut arguments, diagnostics);
        let in_place = in_place && names_policy == policy.is_some();
        Self {
            rules: rules.into_iter().map(|rule| RuleOptions::read(rule, diagnostics)).collect(),
            prevent_duplicate: DuplicateOptions::take(&mut arguments, diagnostics),
            concurrency: ConcurrencyOptions::take_all(&mut arguments, diagnostics),
            name: arguments.text("name", r#"name = "sms.send""#, diagnostics),
            key: arguments.template("key", r#"key = "sms:{phone}""#, diagnostics),
            message: arguments.template("message", MESSAGE, diagnostics),
            ban: BanOptions::take(&mut arguments, diagnostics),
            on_outage: arguments.text("on_outage", r#"on_outage = "local""#, diagnostics),
            deadline: arguments.text("deadline", r#"deadline = "50ms""#, diagnostics),
            warn_at: fraction("warn_at", "warn_at = 0.8", &mut arguments, diagnostics),
            policy,
            subjects: SubjectOptions::take_all(&mut arguments, diagnostics),
            cost: amount("cost", ["cost = 3", "cost = items.len() as u64"], &mut arguments, diagnostics),
            allow_zero_cost: arguments.flag("allow_zero_cost", diagnostics),
            wait: arguments.text("wait", r#"wait = "2s""#, diagnostics),
            refund_if: function("refund_if", "refund_if = Result::is_err", &mut arguments, diagnostics),
            settle: function("settle", "settle = |reply| reply.tokens()", &mut arguments, diagnostics),
            skip_if: arguments.expression("skip_if", "skip_if = user.is_admin()", diagnostics),
            shadow: arguments.flag("shadow", diagnostics),
            reject: function("reject", "reject = ApiError::limited", &mut arguments, diagnostics),
            limiter: value("limiter", ["limiter = self.limiter", "Limiter"], &mut arguments, diagnostics),
            check_fn: identifier("check_fn", ["a function", "check_fn = send_code_limit"], &mut arguments, diagnostics),
            openapi: identifier("openapi", ["a type", "openapi = SendCodeLimits"], &mut arguments, diagnostics),
            runtime: path("crate", "crate = ::tallygate", &mut arguments, diagnostics),
            complete: arguments.finish(diagnostics) && in_place,
        }
    }
}
