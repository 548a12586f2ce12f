//! The model of a subject beside the main one.

use crate::attr::SubjectOptions;
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};
use crate::model::value::{spanned, template};
use crate::template::{Template, TextPurpose};

pub(crate) struct SubjectModel {
    pub(crate) label: Spanned<String>,
    pub(crate) key: Option<Template>,
    pub(crate) span: SpanRange,
}

impl SubjectModel {
    pub(super) fn from_syn(options: &SubjectOptions, diagnostics: &mut Diagnostics) -> Self {
        Self {
            label: spanned(&options.label),
            key: template(Some(&options.key), TextPurpose::Key, diagnostics),
            span: options.span,
        }
    }
}
