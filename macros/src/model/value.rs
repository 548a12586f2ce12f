//! Values of arguments: what their literals mean.

use std::time::Duration;

use syn::{LitInt, LitStr};
use tallygate_rules::{OnOutage, OnOutageError, read_duration};

use crate::diagnostic::{Diagnostics, SpanRange, Spanned, error};
use crate::template::{Template, TextPurpose};

/// Returns the number. One that is too large for the type is also too large for a rule, whose check reports it better.
pub(crate) fn number(literal: &LitInt) -> u64 {
    literal.base10_parse().unwrap_or(u64::MAX)
}

pub(super) fn duration(name: &str, literal: &LitStr) -> syn::Result<Duration> {
    read_duration(name, &literal.value()).map_err(|why| error(literal.span(), why))
}

pub(super) fn spanned_duration(name: &str, literal: &LitStr) -> syn::Result<Spanned<Duration>> {
    Ok(Spanned { value: duration(name, literal)?, span: SpanRange::from(literal.span()) })
}

pub(super) fn on_outage(literal: &LitStr) -> syn::Result<Spanned<OnOutage>> {
    let value = literal.value().parse().map_err(|why: OnOutageError| error(literal.span(), why))?;
    Ok(Spanned { value, span: SpanRange::from(literal.span()) })
}

pub(super) fn spanned(text: &LitStr) -> Spanned<String> {
    Spanned { value: text.value(), span: SpanRange::from(text.span()) }
}

pub(super) fn template(
    literal: Option<&LitStr>,
    purpose: TextPurpose,
    diagnostics: &mut Diagnostics,
) -> Option<Template> {
    literal.and_then(|literal| Template::from_syn(literal, purpose, diagnostics))
}
