//! Builds the subject of any template from text and filtered values.

use std::fmt::Display;

use tallygate_rules::SubnetBits;
use tallygate_rules::{Filter, FilteredValue, Template, TemplatePart};

use super::Subject;
use super::filters::{self, Secret};
use crate::error::BackendError;
use crate::observe::opaque_debug;

/// Builds the [`Subject`] of a template of the attribute: see [`Limiter::subject`](crate::Limiter::subject).
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SubjectBuilder<'a> {
    secret: &'a Secret,
    subject: Subject,
}

/// The last value of a [`SubjectBuilder`], to which filters can be applied.
///
/// The filters are those of placeholders, in the order of the calls: `{email:trim:lower}` is
/// `.value(email).trim().lower()`.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SubjectValue<'a> {
    builder: SubjectBuilder<'a>,
    value: String,
}

impl<'a> SubjectBuilder<'a> {
    pub(crate) fn new(secret: &'a Secret) -> Self {
        Self { secret, subject: Subject::everyone() }
    }

    /// Adds text of the template, without doubled braces: `text("{")` is `{{` of a template.
    pub fn text(mut self, text: &str) -> Self {
        self.subject.push_text(text);
        self
    }

    /// Adds the value of a placeholder.
    pub fn value(self, value: impl Display) -> SubjectValue<'a> {
        SubjectValue { builder: self, value: filters::text_of(&value) }
    }

    /// Adds the value of a placeholder, or the error about a missing one.
    pub(crate) fn try_value(mut self, value: Result<String, BackendError>) -> SubjectValue<'a> {
        let value = value.unwrap_or_else(|mistake| {
            self.subject.refuse(mistake);
            String::new()
        });
        SubjectValue { builder: self, value }
    }

    /// Adds all parts of a template. `read` returns the shown value, which is the first existing alternative, without
    /// its filters.
    pub(crate) fn template<'t>(
        self,
        template: &'t Template,
        read: impl Fn(&'t FilteredValue) -> Result<(&'t FilteredValue, String), BackendError>,
    ) -> Self {
        template.parts().iter().fold(self, |mut builder, part| match part {
            TemplatePart::Text(text) => builder.text(text),
            TemplatePart::Value(value) => match read(value) {
                // As the last case does it, without the steps between.
                Ok((shown, text)) if shown.filters.is_empty() && !value.has_alternatives() => {
                    builder.subject.push_string(&text);
                    builder
                }
                Ok((shown, text)) => {
                    let tag = if value.has_alternatives() { shown.tag() } else { String::new() };
                    let filters = shown.filters.iter().copied();
                    filters.fold(builder.text(&tag).value(text), SubjectValue::filtered).text("")
                }
                Err(mistake) => {
                    builder.subject.refuse(mistake);
                    builder
                }
            },
        })
    }

    /// Returns the subject.
    #[must_use]
    pub fn build(self) -> Subject {
        self.subject
    }
}

impl<'a> SubjectValue<'a> {
    /// Turns the value into lower case.
    pub fn lower(self) -> Self {
        self.filter(|value, _| filters::lower(value))
    }

    /// Removes white space around the value.
    pub fn trim(self) -> Self {
        self.filter(|value, _| filters::trim(value))
    }

    /// Replaces the value by its digest, keyed with the limiter's [secret](crate::LimiterBuilder::secret).
    pub fn hash(self) -> Self {
        self.filter(|value, secret| secret.digest(value))
    }

    /// Replaces an address by its network: IPv4 as it is, and the /64 of IPv6. Other text stays as it is.
    pub fn subnet(self) -> Self {
        self.subnet_bits(SubnetBits::DEFAULT.ipv4, SubnetBits::DEFAULT.ipv6)
    }

    /// Replaces an address by its network of these lengths, like `{ip:subnet(24, 56)}`. With 32 or more bits of IPv4
    /// and 128 or more bits of IPv6, the network is the whole address.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{Limiter, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// assert_eq!(limiter.subject().value("192.0.2.7").subnet_bits(24, 56).build(), Subject::of("192.0.2.0/24"));
    /// ```
    pub fn subnet_bits(self, ipv4: u8, ipv6: u8) -> Self {
        self.filter(|value, _| filters::subnet(value, SubnetBits { ipv4, ipv6 }))
    }

    /// Adds text of the template: see [`SubjectBuilder::text`].
    pub fn text(self, text: &str) -> SubjectBuilder<'a> {
        self.finish().text(text)
    }

    /// Adds the value of the next placeholder.
    pub fn value(self, value: impl Display) -> Self {
        self.finish().value(value)
    }

    /// Returns the subject.
    #[must_use]
    pub fn build(self) -> Subject {
        self.finish().build()
    }

    /// Applies a filter of a template.
    pub(crate) fn filtered(self, filter: Filter) -> Self {
        self.filter(|value, secret| filters::apply(filter, value, secret))
    }

    fn filter(mut self, filter: impl FnOnce(&str, &Secret) -> String) -> Self {
        self.value = filter(&self.value, self.builder.secret);
        self
    }

    fn finish(mut self) -> SubjectBuilder<'a> {
        self.builder.subject.push_value(&self.value);
        self.builder
    }
}

opaque_debug!(SubjectBuilder<'_>);
opaque_debug!(SubjectValue<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_of_values_alone_is_built_the_short_way_too() {
        let secret = Secret::public();
        let built = SubjectBuilder::new(&secret).value("a:b").text(":").value(7).build();
        assert_eq!(built, Subject::of("a:b").and(7));
        assert_eq!(SubjectBuilder::new(&secret).build(), Subject::everyone());
    }

    #[test]
    fn text_stands_for_itself_and_values_are_escaped() {
        let secret = Secret::public();
        let built = SubjectBuilder::new(&secret).text("a/{b}%!é\n").value("a/é").build();
        assert_eq!(built.to_string(), "a/{b}%25%21%C3%A9%0Aa%2F%C3%A9");
    }

    #[test]
    fn filters_are_applied_in_the_order_in_which_they_are_called() {
        let secret = Secret::public();
        let value = |value: &'static str| SubjectBuilder::new(&secret).value(value);
        assert_eq!(value(" Zoë@X ").trim().lower().build(), Subject::of("zoë@x"));
        assert_eq!(value(" Zoë@X ").trim().hash().build(), value("Zoë@X").hash().build());
        assert_eq!(value("[2001:db8::2]:80").subnet().build(), Subject::of("2001:db8::/64"));
    }

    #[test]
    fn debug_output_leaves_out_text_and_values() {
        let secret = Secret::public();
        let builder = SubjectBuilder::new(&secret).value(138).value(139);
        assert!(!format!("{builder:?} {:?}", builder.clone().text("")).contains("13"));
    }
}
