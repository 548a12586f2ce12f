//! The options of `concurrency`.

use syn::LitStr;

use crate::attr::argument::Argument;
use crate::attr::arguments::Arguments;
use crate::attr::rule::CALL_ARGUMENTS;
use crate::attr::value::{Amount, MESSAGE, amount};
use crate::diagnostic::{Diagnostics, SpanRange};

const LIMIT: &str = "limit = 10";
const LEASE: &str = r#"lease = "30s""#;

/// One `concurrency(...)`. An option that could not be read is left out.
pub(crate) struct ConcurrencyOptions {
    pub(crate) span: SpanRange,
    pub(crate) limit: Option<Amount>,
    pub(crate) lease: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    /// Whether no option is missing, and each could be read.
    pub(crate) complete: bool,
}

impl ConcurrencyOptions {
    pub(super) fn take_all(arguments: &mut Arguments, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let written = arguments.take_all("concurrency").into_iter();
        written.map(|concurrency| Self::read(concurrency, diagnostics)).collect()
    }

    /// Reports its arguments outside of it. Returns whether there are none.
    pub(super) fn refuse_outside(arguments: &mut Arguments, diagnostics: &mut Diagnostics) -> bool {
        let lease = r#"belongs in `concurrency(limit = 10, lease = "30s")`"#;
        let limit = "belongs in `concurrency(limit = 10, lease = \"30s\")`, for concurrent calls; for calls per time, write \
                     `rule(count = 10, per = \"60s\")`";
        let in_place = arguments.refuse(&["limit"], limit, diagnostics);
        arguments.refuse(&["lease"], lease, diagnostics) && in_place
    }

    fn read(concurrency: Argument, diagnostics: &mut Diagnostics) -> Self {
        let span = concurrency.span();
        let before = diagnostics.count();
        let list = diagnostics.ok_or_report(concurrency.list(r#"concurrency(limit = 10, lease = "30s")"#));
        let unread = list.is_none();
        let mut list = Arguments::from(list.unwrap_or_default());
        if !unread {
            list.require("limit", LIMIT, span);
            list.require("lease", LEASE, span);
        }
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of `concurrency`", diagnostics);
        let mut options = Self {
            complete: false,
            span,
            limit: amount("limit", [LIMIT, "limit = plan.calls()"], &mut list, diagnostics),
            lease: list.text("lease", LEASE, diagnostics),
            key: list.template("key", r#"key = "{ip}""#, diagnostics),
            name: list.text("name", r#"name = "exports""#, diagnostics),
            message: list.template("message", MESSAGE, diagnostics),
        };
        list.finish(diagnostics);
        options.complete = diagnostics.count() == before && options.limit.is_some() && options.lease.is_some();
        options
    }
}
