//! The options of a ban.

use syn::{LitInt, LitStr};

use crate::attr::arguments::Arguments;
use crate::attr::rule::CALL_ARGUMENTS;
use crate::attr::value::MESSAGE;
use crate::diagnostic::{Diagnostics, SpanRange};

/// Arguments of bans only.
const BAN_ARGUMENTS: [&str; 3] = ["denials", "within", "duration"];

/// `ban(...)`. An option that could not be read is left out.
pub(crate) struct BanOptions {
    pub(crate) span: SpanRange,
    pub(crate) denials: Option<LitInt>,
    pub(crate) within: Option<LitStr>,
    pub(crate) duration: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
}

impl BanOptions {
    pub(super) fn take(arguments: &mut Arguments, diagnostics: &mut Diagnostics) -> Option<Self> {
        let [denials, within, duration] = ["denials = 20", r#"within = "10m""#, r#"duration = "1h""#];
        let argument = arguments.take("ban", diagnostics)?;
        let span = argument.span();
        let list = diagnostics.ok_or_report(argument.list(&format!("ban({denials}, {within}, {duration})")))?;
        let mut list = Arguments::from(list);
        for (name, example) in BAN_ARGUMENTS.into_iter().zip([denials, within, duration]) {
            list.require(name, example, span);
        }
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the ban", diagnostics);
        list.refuse(&["key"], "of a ban is that of the function; write it outside of the ban", diagnostics);
        let options = Self {
            span,
            denials: list.integer("denials", denials, diagnostics),
            within: list.text("within", within, diagnostics),
            duration: list.text("duration", duration, diagnostics),
            message: list.template("message", MESSAGE, diagnostics),
        };
        list.finish(diagnostics);
        Some(options)
    }
}
