//! The model of a ban.

use syn::{LitInt, LitStr};
use tallygate_rules::{Ban, Field, MAX_PER};

use crate::attr::BanOptions;
use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::value::{duration, number, template};
use crate::template::{Template, TextPurpose};

/// A ban, and the places of its arguments.
pub(crate) struct BanModel {
    pub(crate) ban: Ban,
    /// The text of a rejection by the ban.
    pub(crate) message: Option<Template>,
    pub(crate) span: SpanRange,
    spans: Vec<(Field, SpanRange)>,
}

impl BanModel {
    pub(crate) fn from_syn(options: &BanOptions, diagnostics: &mut Diagnostics) -> Self {
        let BanOptions { span, denials, within, duration: ban_duration, message } = options;
        let mut read = |name, literal: &Option<LitStr>| {
            let read = literal.as_ref().and_then(|literal| diagnostics.ok_or_report(duration(name, literal)));
            // The longest duration, which is sound beside any rule, takes the place of an unreadable one, so that only the
            // latter is reported.
            read.unwrap_or(MAX_PER)
        };
        let within_read = read("within", within);
        let duration_read = read("duration", ban_duration);
        let spans = [
            (Field::Denials, denials.as_ref().map(LitInt::span)),
            (Field::Within, within.as_ref().map(LitStr::span)),
            (Field::Duration, ban_duration.as_ref().map(LitStr::span)),
        ];
        Self {
            ban: Ban::new(denials.as_ref().map_or(1, number), within_read, duration_read),
            message: template(message.as_ref(), TextPurpose::BanMessage, diagnostics),
            span: *span,
            spans: spans.into_iter().filter_map(|(field, span)| Some((field, span?.into()))).collect(),
        }
    }

    /// Returns the place of an argument, or of the whole ban.
    pub(crate) fn span_of(&self, field: Field) -> SpanRange {
        self.spans.iter().find(|(written, _)| *written == field).map_or(self.span, |(_, span)| *span)
    }
}
