//! The model of a subject beside the main one.

use crate::attr::SubjectOptions;
use crate::diagnostic::{Mistakes, Place, Spanned};
use crate::model::value::{spanned, template};
use crate::template::{Purpose, Template};

pub(crate) struct SubjectModel {
    pub(crate) label: Spanned<String>,
    pub(crate) key: Option<Template>,
    pub(crate) place: Place,
}

impl SubjectModel {
    pub(super) fn from_syn(options: &SubjectOptions, mistakes: &mut Mistakes) -> Self {
        Self {
            label: spanned(&options.label),
            key: template(Some(&options.key), Purpose::Key, mistakes),
            place: options.place,
        }
    }
}
