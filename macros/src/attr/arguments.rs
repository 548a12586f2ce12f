//! A list of arguments, which are taken out of it by their names.

use proc_macro2::TokenStream;
use syn::{Expr, LitInt, LitStr};
use tallygate_rules::{missing_argument, nearest, synonym, unknown_argument};

use crate::attr::argument::{Argument, Written};
use crate::attr::{meant, suggestion};
use crate::diagnostic::{Diagnostics, SpanRange, error};

/// Each argument is removed when it is read by its name, so the rest is unknown.
#[derive(Default)]
pub(super) struct Arguments {
    written: Written,
    /// The names that were asked for.
    known: Vec<&'static str>,
    /// Names that are arguments of another list, with the name of that list in a text.
    misplaced: Vec<(&'static [&'static str], &'static str)>,
    missing: Vec<syn::Error>,
}

impl From<Written> for Arguments {
    fn from(written: Written) -> Self {
        Self { written, ..Self::default() }
    }
}

impl Arguments {
    pub(super) fn parse(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Self {
        Written::parse(tokens, diagnostics).into()
    }

    /// Takes the argument of that name, and reports repetitions.
    pub(super) fn take(&mut self, name: &'static str, diagnostics: &mut Diagnostics) -> Option<Argument> {
        let mut taken = self.take_all(name).into_iter();
        let first = taken.next();
        for repeated in taken {
            diagnostics.report(repeated.name.span(), format_args!("`{name}` is given twice; remove one"));
        }
        first
    }

    /// Takes all arguments of that name.
    pub(super) fn take_all(&mut self, name: &'static str) -> Vec<Argument> {
        self.known.push(name);
        self.written.arguments.extract_if(.., |argument| argument.is(name)).collect()
    }

    /// Takes `name = "text"`.
    pub(super) fn text(&mut self, name: &'static str, example: &str, diagnostics: &mut Diagnostics) -> Option<LitStr> {
        self.take(name, diagnostics).and_then(|argument| diagnostics.ok_or_report(argument.text(example)))
    }

    /// Takes `name = "text with {placeholders}"`, and suggests it for an expression that means the same.
    pub(super) fn template(
        &mut self,
        name: &'static str,
        example: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<LitStr> {
        let argument = self.take(name, diagnostics)?;
        let meant = argument.single().and_then(suggestion::template).map(|text| format!("{name} = {text:?}"));
        diagnostics.ok_or_report(argument.text(meant.as_deref().unwrap_or(example)))
    }

    /// Takes `name = 10`.
    pub(super) fn integer(
        &mut self,
        name: &'static str,
        example: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<LitInt> {
        self.take(name, diagnostics).and_then(|argument| diagnostics.ok_or_report(argument.integer(example)))
    }

    /// Takes `name = expression`.
    pub(super) fn expression(
        &mut self,
        name: &'static str,
        example: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Expr> {
        self.take(name, diagnostics).and_then(|argument| diagnostics.ok_or_report(argument.expression(example)))
    }

    /// Takes `name`, and returns its place.
    pub(super) fn flag(&mut self, name: &'static str, diagnostics: &mut Diagnostics) -> Option<SpanRange> {
        self.take(name, diagnostics).and_then(|argument| diagnostics.ok_or_report(argument.flag()))
    }

    /// Returns whether an argument of that name is left.
    pub(super) fn has(&self, name: &str) -> bool {
        self.written.arguments.iter().any(|argument| argument.is(name))
    }

    /// Reports arguments that belong to another list. Returns whether there are none.
    pub(super) fn refuse(
        &mut self,
        names: &'static [&'static str],
        belongs: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> bool {
        self.misplaced.push((names, belongs));
        let refused: Vec<_> =
            self.written.arguments.extract_if(.., |argument| names.iter().any(|name| argument.is(name))).collect();
        for argument in &refused {
            diagnostics.report(argument.name.span(), format_args!("`{}` {belongs}", argument.name));
        }
        refused.is_empty()
    }

    /// Requires an argument that was not taken yet.
    pub(super) fn require(&mut self, name: &str, example: &str, span: SpanRange) {
        if !self.has(name) {
            self.missing.push(error(span, missing_argument(name, example)));
        }
    }

    /// Reports arguments that are unknown or missing. Returns whether all that is written is known.
    pub(super) fn finish(self, diagnostics: &mut Diagnostics) -> bool {
        for unknown in &self.written.arguments {
            diagnostics.report(unknown.name.span(), self.unknown(unknown));
        }
        let all_known = !self.written.broken && self.written.arguments.is_empty();
        // An argument that seems to be missing may be the one that is unknown.
        if all_known {
            for missing in self.missing {
                diagnostics.push(missing);
            }
        }
        all_known
    }

    fn unknown(&self, argument: &Argument) -> String {
        let name = &*argument.name.to_string();
        if let Some(rules) = argument.single().and_then(meant::rules).filter(|_| self.known.contains(&"rule")) {
            return format!("unknown argument `{name}`; did you mean `{rules}`?");
        }
        if let Some(rule) = argument.single().and_then(|count| meant::rate(name, count, &self.known)) {
            return format!("unknown argument `{name}`; did you mean `{rule}`?");
        }
        let is_alike = synonym(name, &self.known).is_some() || nearest(name, self.known.iter().copied()).is_some();
        match self.misplaced_synonym(name).filter(|_| !is_alike) {
            Some((meant, belongs)) => format!("unknown argument `{name}`; did you mean `{meant}`? it {belongs}"),
            None => unknown_argument(name, &self.known),
        }
    }

    fn misplaced_synonym(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.misplaced.iter().find_map(|(names, belongs)| Some((synonym(name, names)?, *belongs)))
    }
}
