//! The fields in words, for documents of OpenAPI.

use std::collections::BTreeSet;

use super::item::unit_in_fields;
use super::{Fields, Legacy};

/// A field in words.
pub(in crate::web) struct FieldDescription {
    pub(in crate::web) name: String,
    pub(in crate::web) text: String,
    /// Whether its value is a whole number.
    pub(in crate::web) is_number: bool,
}

impl FieldDescription {
    fn of(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), is_number: false }
    }

    fn number(self) -> Self {
        Self { is_number: true, ..self }
    }
}

impl Fields {
    /// Describes the fields of a response that lists such limits, given what these limits count.
    pub(in crate::web) fn described(self, limits: &str, units: &BTreeSet<String>) -> Vec<FieldDescription> {
        let draft = self.draft.map(|_| draft(limits));
        let legacy = match self.legacy {
            Some(Legacy::XRateLimit) => x_ratelimit().into(),
            Some(Legacy::XRateLimitByUnit) => units.iter().flat_map(|unit| x_ratelimit_of_unit(unit)).collect(),
            None => Vec::new(),
        };
        draft.into_iter().flatten().chain(legacy).collect()
    }
}

fn draft(limits: &str) -> [FieldDescription; 2] {
    [
        FieldDescription::of("RateLimit-Policy", format!("{limits}.")),
        FieldDescription::of("RateLimit", "Where these limits stand."),
    ]
}

fn x_ratelimit() -> [FieldDescription; 3] {
    [
        FieldDescription::of("X-RateLimit-Limit", "The count of the tightest limit.").number(),
        FieldDescription::of("X-RateLimit-Remaining", "What is left of it.").number(),
        FieldDescription::of(
            "X-RateLimit-Reset",
            "The seconds until all of it is left or, where nothing is, until one more request is admitted.",
        )
        .number(),
    ]
}

fn x_ratelimit_of_unit(unit: &str) -> [FieldDescription; 3] {
    let unit = unit_in_fields(unit);
    let in_words = unit.replace('-', " ");
    [
        FieldDescription::of(
            format!("x-ratelimit-limit-{unit}"),
            format!("The count of the tightest limit on {in_words}."),
        )
        .number(),
        FieldDescription::of(format!("x-ratelimit-remaining-{unit}"), "What is left of it.").number(),
        FieldDescription::of(
            format!("x-ratelimit-reset-{unit}"),
            "The time, like `6m0s`, until all of it is left; where nothing is left, until something is; and where it denied the \
             request, until the request would be admitted.",
        ),
    ]
}
