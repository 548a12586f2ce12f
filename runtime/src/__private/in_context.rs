//! Values of the context, in keys and messages.

use std::fmt;

use super::values::{Renderer, Values};
use crate::context;

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

impl<F> fmt::Debug for FilteredInContext<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilteredInContext").field(&self.name).finish()
    }
}

/// Adds a value of the context to a message.
pub fn push_context(message: &mut String, name: &'static str) {
    context::show(message, name, str::to_owned);
}

/// Adds a value of the context to a message, filtered.
pub fn push_context_filtered(message: &mut String, name: &'static str, filter: impl FnOnce(&str) -> String) {
    context::show(message, name, filter);
}
