//! What the attribute's ban means.

use tallygate_rules::{Ban, Field, MAX_PER};

use crate::attr::BanOptions;
use crate::diagnostic::{Mistakes, Place};
use crate::rule::{duration, number};
use crate::template::{Purpose, Template};

/// A ban, and where its parts are written.
pub(crate) struct BanModel {
    pub(crate) ban: Ban,
    /// What the caller is told who is banned.
    pub(crate) message: Option<Template>,
    pub(crate) place: Place,
    places: Vec<(Field, Place)>,
}

impl BanModel {
    pub(crate) fn from_syn(options: &BanOptions, mistakes: &mut Mistakes) -> Self {
        let BanOptions { place, denials, within, duration: lasting, message } = options;
        let mut length = |name, literal: &Option<_>| {
            // The longest is sound beside any rule.
            let read = literal.as_ref().and_then(|literal| mistakes.keep(duration(name, literal)));
            read.unwrap_or(MAX_PER)
        };
        let (within_read, lasting_read) = (length("within", within), length("duration", lasting));
        let places = [
            (Field::Denials, denials.as_ref().map(syn::LitInt::span)),
            (Field::Within, within.as_ref().map(syn::LitStr::span)),
            (Field::Duration, lasting.as_ref().map(syn::LitStr::span)),
        ];
        Self {
            ban: Ban::new(denials.as_ref().map_or(1, number), within_read, lasting_read),
            message: message.as_ref().and_then(|text| Template::from_syn(text, Purpose::BanMessage, mistakes)),
            place: *place,
            places: places.into_iter().filter_map(|(field, span)| Some((field, span?.into()))).collect(),
        }
    }

    /// Returns where a part of the ban is written.
    pub(crate) fn place_of(&self, field: Field) -> Place {
        self.places.iter().find(|(of, _)| *of == field).map_or(self.place, |(_, place)| *place)
    }
}
