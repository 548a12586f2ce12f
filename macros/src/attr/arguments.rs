//! A list of arguments, from which each argument is taken by its name.

use std::fmt::Display;

use proc_macro2::TokenStream;
use syn::{Lit, LitStr};
use tallygate_rules::{Field, meant, missing_argument, synonym, unknown_argument};

use crate::attr::suggestion;
use crate::attr::{Argument, ParsedList};
use crate::diagnostic::{Diagnostics, SpanRange, error};

/// The arguments that are not taken yet. Those that are left at the end are unknown.
pub(crate) struct Arguments<'d> {
    pub(crate) span: SpanRange,
    parsed: ParsedList,
    /// The names of all arguments that were asked for.
    known: Vec<&'static str>,
    /// The spans of the values that were taken.
    values: Vec<(&'static str, SpanRange)>,
    /// Names of arguments of other lists, each with a text that says where they belong.
    misplaced: Vec<(&'static [&'static str], &'static str)>,
    missing: Vec<syn::Error>,
    /// The number of mistakes that were reported before this list was opened.
    earlier_mistakes: usize,
    pub(crate) diagnostics: &'d mut Diagnostics,
}

/// A list whose arguments were all taken: its span, and the spans of its values.
pub(crate) struct WrittenList {
    pub(crate) span: SpanRange,
    values: Vec<(&'static str, SpanRange)>,
    /// Whether each argument is known and has no syntax error.
    pub(crate) all_known: bool,
    /// Whether no argument is missing, and the value of each known argument could be read.
    pub(crate) complete: bool,
}

impl WrittenList {
    pub(crate) fn span_of(&self, field: Field) -> SpanRange {
        let value = self.values.iter().find(|(name, _)| field.arguments().contains(name));
        value.map_or(self.span, |(_, span)| *span)
    }
}

impl<'d> Arguments<'d> {
    /// Reads the arguments of the attribute itself.
    pub(crate) fn parse(tokens: TokenStream, diagnostics: &'d mut Diagnostics) -> Self {
        let parsed = ParsedList::parse(tokens, diagnostics);
        Self::of_list(SpanRange::call_site(), parsed, diagnostics)
    }

    /// Reads `name(arguments)`. A list that cannot be read has no arguments, and none of them is reported as missing.
    pub(crate) fn open(argument: Argument, diagnostics: &'d mut Diagnostics) -> Self {
        Self::of_result(argument.span(), argument.list(), diagnostics)
    }

    /// Reads `name` or `name(arguments)`.
    pub(crate) fn open_optional(argument: Argument, example: &str, diagnostics: &'d mut Diagnostics) -> Self {
        Self::of_result(argument.span(), argument.flag_or_list(example), diagnostics)
    }

    fn of_result(span: SpanRange, list: syn::Result<ParsedList>, diagnostics: &'d mut Diagnostics) -> Self {
        let earlier_mistakes = diagnostics.count();
        let parsed = diagnostics.ok_or_report(list).unwrap_or_else(ParsedList::unreadable);
        Self { earlier_mistakes, ..Self::of_list(span, parsed, diagnostics) }
    }

    fn of_list(span: SpanRange, parsed: ParsedList, diagnostics: &'d mut Diagnostics) -> Self {
        Self {
            span,
            parsed,
            known: Vec::new(),
            values: Vec::new(),
            misplaced: Vec::new(),
            missing: Vec::new(),
            earlier_mistakes: diagnostics.count(),
            diagnostics,
        }
    }

    /// Takes the first argument of that name, and reports repetitions.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Argument> {
        let mut taken = self.take_all(name).into_iter();
        let first = taken.next();
        for repeated in taken {
            self.diagnostics.report(repeated.name.span(), format_args!("`{name}` is given twice; remove one"));
        }
        let value = first.as_ref().and_then(Argument::single_value).map(SpanRange::of_tokens);
        self.values.extend(value.map(|span| (name, span)));
        first
    }

    /// Takes the text in front of the arguments.
    pub(crate) fn take_leading(&mut self) -> Option<LitStr> {
        match self.parsed.leading.take()? {
            Lit::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn take_all(&mut self, name: &'static str) -> Vec<Argument> {
        self.known.push(name);
        self.parsed.arguments.extract_if(.., |argument| argument.has_name(name)).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.parsed.arguments.iter().any(|argument| argument.has_name(name))
    }

    /// Reports arguments that belong in another list. Returns whether there are none.
    pub(crate) fn refuse(&mut self, names: &'static [&'static str], belongs: &'static str) -> bool {
        self.misplaced.push((names, belongs));
        let is_misplaced = |argument: &mut Argument| names.iter().any(|name| argument.has_name(name));
        let refused: Vec<_> = self.parsed.arguments.extract_if(.., is_misplaced).collect();
        for argument in &refused {
            self.diagnostics.report(argument.name.span(), format_args!("`{}` {belongs}", argument.name));
        }
        self.earlier_mistakes += refused.len();
        refused.is_empty()
    }

    /// Reports the argument as missing if it is not in the list. Call it before the argument is taken.
    pub(crate) fn require(&mut self, name: &str, example: &str) {
        if !self.has(name) {
            self.missing.push(error(self.span, missing_argument(name, example)));
        }
    }

    /// Reports a missing text in front of the arguments. Call it before the text is taken.
    pub(crate) fn require_leading(&mut self, message: impl Display) {
        if !matches!(self.parsed.leading, Some(Lit::Str(_))) {
            self.missing.push(error(self.span, message));
        }
    }

    /// Returns the span of the value of a taken argument, or of the whole list.
    pub(super) fn span_of(&self, argument: &str) -> SpanRange {
        self.values.iter().find(|(name, _)| *name == argument).map_or(self.span, |(_, span)| *span)
    }

    /// Reports arguments that are unknown or missing.
    pub(crate) fn finish(self) -> WrittenList {
        let complete = self.missing.is_empty() && self.diagnostics.count() == self.earlier_mistakes;
        for unknown in &self.parsed.arguments {
            let message = self.unknown(unknown);
            self.diagnostics.report(unknown.name.span(), message);
        }
        let all_known = !self.parsed.broken && self.parsed.arguments.is_empty();
        // An unknown argument may be the missing one, misspelt.
        if all_known {
            for missing in self.missing {
                self.diagnostics.push(missing);
            }
        }
        WrittenList { span: self.span, values: self.values, all_known, complete }
    }

    fn unknown(&self, argument: &Argument) -> String {
        let name = &*argument.name.to_string();
        let rules = argument.single_value().and_then(suggestion::rules).filter(|_| self.known.contains(&"rule"));
        if let Some(rules) = rules {
            return format!("unknown argument `{name}`; did you mean `{rules}`?");
        }
        if let Some(rule) = argument.single_value().and_then(|count| suggestion::rate(name, count, &self.known)) {
            return format!("unknown argument `{name}`; did you mean `{rule}`?");
        }
        match self.misplaced_synonym(name).filter(|_| meant(name, &self.known).is_none()) {
            Some((meant, belongs)) => format!("unknown argument `{name}`; did you mean `{meant}`? it {belongs}"),
            None => unknown_argument(name, &self.known),
        }
    }

    fn misplaced_synonym(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.misplaced.iter().find_map(|(names, belongs)| Some((synonym(name, names)?, *belongs)))
    }
}
