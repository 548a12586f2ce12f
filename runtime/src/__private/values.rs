//! The values of placeholders, and the subject that they render.

use std::fmt::{self, Debug, Display};
use std::panic::Location;
use std::slice;

pub(super) use itoa::Buffer as NumberText;
use tallygate_rules::SubnetBits;

use crate::context;
use crate::limiter::Limiter;
use crate::subject::{Subject, filters};

/// The texts of a key before each value and after the last one. The attribute has escaped them.
pub(super) type Texts = &'static [&'static str];

/// A value that a placeholder can show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shown by a placeholder",
    label = "a placeholder's value is `Display`",
    note = "name a field or a method that is, like `{{user.id}}` or `{{user.name()}}`",
    note = "or show what `Debug` shows, like `{{form:debug}}`",
    note = "for an `Option`, show a default in place of `None`, like `{{name.as_deref().unwrap_or_default()}}`"
)]
pub trait Value: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> Value for T {}

/// The values of a key: one value, or a tuple of several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shown by a placeholder",
    label = "a placeholder's value is `Display`",
    note = "name a field or a method that is, like `{{user.id}}` or `{{user.name()}}`",
    note = "or show what `Debug` shows, like `{{form:debug}}`",
    note = "for an `Option`, show a default in place of `None`, like `{{name.as_deref().unwrap_or_default()}}`"
)]
pub trait Values {
    /// Adds each value after its text.
    fn render(self, key: &mut Renderer<'_>);

    /// The only value, if it is text or a number. A number is written to `room`.
    #[inline]
    fn text<'t>(&'t self, room: &'t mut NumberText) -> Option<&'t str> {
        let _ = room;
        None
    }
}

/// A subject that is being rendered.
#[derive(Debug)]
pub struct Renderer<'s> {
    subject: &'s mut Subject,
    texts: slice::Iter<'static, &'static str>,
}

/// Renders the subject of a call. If that fails, the error of the call names the place of its attribute.
#[inline]
#[track_caller]
pub fn subject(texts: Texts, values: impl Values) -> Subject {
    let mut subject = Subject::everyone();
    render(&mut subject, texts, values);
    subject
}

/// Renders as [`subject`] does, to where the subject stays: a copy of it would cost as much as the text.
#[inline]
#[track_caller]
pub(super) fn render(subject: &mut Subject, texts: Texts, values: impl Values) {
    let mut rendering = Renderer { subject, texts: texts.iter() };
    values.render(&mut rendering);
    rendering.text();
    if subject.mistake().is_some() {
        locate_mistake(subject, Location::caller());
    }
}

/// Renders a key whose only value is text, which no mistake can be in.
#[inline]
pub(super) fn render_text(subject: &mut Subject, texts: Texts, value: &str) {
    let mut rendering = Renderer { subject, texts: texts.iter() };
    rendering.text().push_string(value);
    rendering.text();
}

#[cold]
fn locate_mistake(subject: &mut Subject, attribute: &Location<'_>) {
    subject.map_mistake(|mistake| mistake.with_text(format!("{mistake}; the limit is at {attribute}")));
}

impl Renderer<'_> {
    /// Adds the text before the next value, or after the last one.
    #[inline]
    pub(super) fn text(&mut self) -> &mut Subject {
        if let Some(text) = self.texts.next() {
            self.subject.push_literal(text);
        }
        self.subject
    }

    fn value(&mut self, value: &dyn Display) {
        self.text().push_value(value);
    }

    fn string(&mut self, value: &str) {
        self.text().push_string(value);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Value> Values for &T {
    #[inline]
    fn render(self, key: &mut Renderer<'_>) {
        key.value(self);
    }
}

/// The attribute sees by the argument's type that it is text, which needs no formatting.
#[diagnostic::do_not_recommend]
impl Values for &str {
    #[inline]
    fn render(self, key: &mut Renderer<'_>) {
        key.string(self);
    }

    #[inline]
    fn text<'t>(&'t self, _: &'t mut NumberText) -> Option<&'t str> {
        Some(self)
    }
}

/// The attribute sees by the argument's type that it is a number, which is written as `Display` would, in a fraction of the time.
macro_rules! numbers {
    ($($number:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Values for $number {
            #[inline]
            fn render(self, key: &mut Renderer<'_>) {
                key.string(NumberText::new().format(self));
            }

            #[inline]
            fn text<'t>(&'t self, room: &'t mut NumberText) -> Option<&'t str> {
                Some(room.format(*self))
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

#[diagnostic::do_not_recommend]
impl Values for () {
    #[inline]
    fn render(self, _: &mut Renderer<'_>) {}
}

#[diagnostic::do_not_recommend]
impl<A: Values, B: Values> Values for (A, B) {
    #[inline]
    fn render(self, key: &mut Renderer<'_>) {
        self.0.render(key);
        self.1.render(key);
    }
}

/// A value of the context, which is read when the key is rendered.
#[derive(Clone, Copy, Debug)]
pub struct InContext(&'static str);

/// A value of the context that is filtered.
pub struct FilteredInContext<F> {
    name: &'static str,
    filter: F,
}

/// Returns the value of that name.
#[must_use]
pub fn context(name: &'static str) -> InContext {
    InContext(name)
}

/// Returns the value of that name, filtered.
pub fn context_filtered<F: FnOnce(&str) -> String>(name: &'static str, filter: F) -> FilteredInContext<F> {
    FilteredInContext { name, filter }
}

impl Values for InContext {
    fn render(self, key: &mut Renderer<'_>) {
        context::push(key.text(), self.0);
    }
}

impl<F: FnOnce(&str) -> String> Values for FilteredInContext<F> {
    fn render(self, key: &mut Renderer<'_>) {
        context::push_filtered(key.text(), self.name, self.filter);
    }
}

/// One or more values of the context.
pub trait Alternative {
    /// Adds the first existing value after its name. Returns whether there is one.
    fn push_tagged(self, subject: &mut Subject) -> bool;
}

impl Alternative for InContext {
    fn push_tagged(self, subject: &mut Subject) -> bool {
        context::push_tagged(subject, self.0, str::to_owned)
    }
}

impl<F: FnOnce(&str) -> String> Alternative for FilteredInContext<F> {
    fn push_tagged(self, subject: &mut Subject) -> bool {
        context::push_tagged(subject, self.name, self.filter)
    }
}

impl<A: Alternative, B: Alternative> Alternative for (A, B) {
    fn push_tagged(self, subject: &mut Subject) -> bool {
        self.0.push_tagged(subject) || self.1.push_tagged(subject)
    }
}

/// The first existing one of several values of the context.
#[derive(Clone, Copy, Debug)]
pub struct FirstInContext<A> {
    /// The names of all values, as they are written after the first `@`.
    names: &'static str,
    alternatives: A,
}

/// Returns the first existing one of these values.
pub fn first_in_context<A: Alternative>(names: &'static str, alternatives: A) -> FirstInContext<A> {
    FirstInContext { names, alternatives }
}

impl<A: Alternative> Values for FirstInContext<A> {
    fn render(self, key: &mut Renderer<'_>) {
        let subject = key.text();
        if !self.alternatives.push_tagged(subject) {
            context::refuse_missing(subject, self.names);
        }
    }
}

impl<F> fmt::Debug for FilteredInContext<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilteredInContext").field(&self.name).finish()
    }
}

/// Returns the value as `Debug` shows it.
pub fn debug(value: &(impl Debug + ?Sized)) -> String {
    format!("{value:?}")
}

/// Returns the value in lower case.
pub fn lower(value: &(impl Value + ?Sized)) -> String {
    filters::lower(&filters::text_of(value))
}

/// Returns the value without white space around it.
pub fn trim(value: &(impl Value + ?Sized)) -> String {
    filters::trim(&filters::text_of(value))
}

/// Returns the value's digest, which is keyed with the limiter's secret.
pub fn hash(value: &(impl Value + ?Sized), limiter: &Limiter) -> String {
    limiter.secret().digest(&filters::text_of(value))
}

/// Returns the network of an address. `ipv4` and `ipv6` are the lengths of networks, in bits.
pub fn subnet(value: &(impl Value + ?Sized), ipv4: u8, ipv6: u8) -> String {
    filters::subnet(&filters::text_of(value), SubnetBits { ipv4, ipv6 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_a_key_is_the_text_that_others_see() {
        assert_eq!(subject(&["n:", ""], u64::MAX), Subject::of("n").and(u64::MAX));
        assert_eq!(subject(&["", ":", ""], (i128::MIN, 0_u8)), Subject::of(i128::MIN).and(0));
        assert_eq!((-7_i16).text(&mut NumberText::new()), Some("-7"));
    }
}
