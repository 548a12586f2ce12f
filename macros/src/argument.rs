//! The syntax of arguments: `name`, `name = value` or `name(arguments)`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, LitInt, LitStr, Token, token};

use crate::diagnostic::{Mistakes, Place, error, nearest};
use crate::suggestion;
use crate::synonym::synonym;

/// One argument. Its name and value are not interpreted yet.
pub(crate) struct Argument {
    name: Ident,
    value: Value,
}

enum Value {
    Flag,
    Single(Expr),
    List(Span, Arguments),
    /// Values without names, of the arguments in `POSITIONAL`.
    Positional(Span, Vec<Expr>),
}

/// The arguments whose values have no names: `subject("network", "{ip:subnet}")`.
const POSITIONAL: [&str; 1] = ["subject"];

/// A list of arguments. Each is removed when it is read by its name, so the rest is unknown.
#[derive(Default)]
pub(crate) struct Arguments {
    written: Vec<Argument>,
    /// The names that were asked for.
    known: Vec<&'static str>,
    /// Names that are arguments of another list, with the text that says of which.
    misplaced: Vec<(&'static [&'static str], &'static str)>,
    missing: Vec<syn::Error>,
    /// Whether an argument has a syntax error.
    broken: bool,
}

impl Arguments {
    pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut arguments = Self::default();
        let read = |input: ParseStream<'_>| {
            arguments = Self::read(input, r#"rule(count = 10, per = "60s")"#, mistakes);
            Ok(())
        };
        if let Err(mistake) = read.parse2(tokens) {
            mistakes.add(mistake);
        }
        arguments
    }

    /// Reads to the end, and skips what has a syntax error.
    fn read(input: ParseStream<'_>, example: &str, mistakes: &mut Mistakes) -> Self {
        let mut arguments = Self::default();
        while !input.is_empty() {
            let read = Argument::read(input, example, mistakes).map(|argument| arguments.written.push(argument));
            if let Err(mistake) = read.and_then(|()| read_separator(input)) {
                mistakes.add(mistake);
                arguments.broken = true;
                skip_to_separator(input);
            }
        }
        arguments
    }

    /// Takes the argument of that name, and reports repetitions.
    pub(crate) fn take(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Argument> {
        let mut taken = self.take_all(name).into_iter();
        let first = taken.next();
        for repeated in taken {
            mistakes.report(repeated.name.span(), format_args!("`{name}` is given twice; remove one"));
        }
        first
    }

    /// Takes all arguments of that name.
    pub(crate) fn take_all(&mut self, name: &'static str) -> Vec<Argument> {
        self.known.push(name);
        self.written.extract_if(.., |argument| argument.name == name).collect()
    }

    /// Takes `name = "text"`.
    pub(crate) fn text(&mut self, name: &'static str, example: &str, mistakes: &mut Mistakes) -> Option<LitStr> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.text(example)))
    }

    /// Takes `name = "text with {placeholders}"`, and suggests it for an expression that means the same.
    pub(crate) fn template(&mut self, name: &'static str, example: &str, mistakes: &mut Mistakes) -> Option<LitStr> {
        let argument = self.take(name, mistakes)?;
        let meant = argument.single().and_then(suggestion::template).map(|text| format!("{name} = {text:?}"));
        mistakes.keep(argument.text(meant.as_deref().unwrap_or(example)))
    }

    /// Takes `name = 10`.
    pub(crate) fn integer(&mut self, name: &'static str, example: &str, mistakes: &mut Mistakes) -> Option<LitInt> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.integer(example)))
    }

    /// Takes `name = expression`.
    pub(crate) fn expression(&mut self, name: &'static str, example: &str, mistakes: &mut Mistakes) -> Option<Expr> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.expression(example)))
    }

    /// Takes `name`, and returns its place.
    pub(crate) fn flag(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Place> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.flag()))
    }

    /// Returns whether an argument of that name is left.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written.iter().any(|argument| argument.name == name)
    }

    /// Reports arguments that belong to another list. Returns whether there are none.
    pub(crate) fn refuse(
        &mut self,
        names: &'static [&'static str],
        belongs: &'static str,
        mistakes: &mut Mistakes,
    ) -> bool {
        self.misplaced.push((names, belongs));
        let refused: Vec<_> =
            self.written.extract_if(.., |argument| names.iter().any(|name| argument.name == name)).collect();
        for argument in &refused {
            mistakes.report(argument.name.span(), format_args!("`{}` {belongs}", argument.name));
        }
        refused.is_empty()
    }

    /// Requires an argument that was not taken yet.
    pub(crate) fn require(&mut self, name: &str, example: &str, place: Place) {
        if !self.has(name) {
            self.missing.push(error(place, format_args!("`{name}` is missing; add it, like `{example}`")));
        }
    }

    /// Reports arguments that are unknown or missing. Returns whether all that is written is known.
    pub(crate) fn finish(self, mistakes: &mut Mistakes) -> bool {
        for unknown in &self.written {
            mistakes.report(unknown.name.span(), self.unknown(&unknown.name.to_string()));
        }
        let all_known = !self.broken && self.written.is_empty();
        // An argument that seems to be missing may be the one that is unknown.
        if all_known {
            for missing in self.missing {
                mistakes.add(missing);
            }
        }
        all_known
    }

    fn unknown(&self, name: &str) -> String {
        let known = || self.known.iter().copied();
        let remedy = if let Some(meant) = synonym(name, &self.known).or_else(|| nearest(name, known())) {
            format!("did you mean `{meant}`?")
        } else if let Some((meant, belongs)) = self.misplaced_synonym(name) {
            format!("did you mean `{meant}`? it {belongs}")
        } else {
            format!("the arguments are `{}`", self.known.join("`, `"))
        };
        format!("unknown argument `{name}`; {remedy}")
    }

    fn misplaced_synonym(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.misplaced.iter().find_map(|(names, belongs)| Some((synonym(name, names)?, *belongs)))
    }
}

/// Returns an example of an argument in the list of that name.
fn example_in(list: &Ident) -> &'static str {
    match list {
        rule if rule == "rule" => "count = 10",
        ban if ban == "ban" => "denials = 20",
        duplicate if duplicate == "prevent_duplicate" => r#"per = "5s""#,
        _ => "name = value",
    }
}

fn read_separator(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    input.parse::<Token![,]>().map(drop).map_err(|_| input.error("expected `,` between two arguments"))
}

fn skip_to_separator(input: ParseStream<'_>) {
    while !input.is_empty() && input.parse::<Option<Token![,]>>().is_ok_and(|comma| comma.is_none()) {
        // A token is left, so this removes it and cannot fail.
        let _ = input.parse::<TokenTree>();
    }
}

impl Argument {
    fn read(input: ParseStream<'_>, example: &str, mistakes: &mut Mistakes) -> syn::Result<Self> {
        let nameless = |_| input.error(format_args!("expected the name of an argument, like `{example}`"));
        let name = input.call(Ident::parse_any).map_err(nameless)?;
        let value = if input.peek(token::Paren) {
            let content;
            let parens = syn::parenthesized!(content in input);
            if POSITIONAL.iter().any(|positional| name == positional) {
                let values: TokenStream = content.parse()?;
                let values = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(values)?;
                Value::Positional(parens.span.close(), values.into_iter().map(ungrouped).collect())
            } else {
                Value::List(parens.span.close(), Arguments::read(&content, example_in(&name), mistakes))
            }
        } else if input.parse::<Option<Token![=]>>()?.is_some() {
            Value::Single(read_value(&name, input)?)
        } else if input.peek(Token![:]) {
            return Err(input.error(format_args!("expected `=` between `{name}` and its value")));
        } else {
            Value::Flag
        };
        Ok(Self { name, value })
    }

    pub(crate) fn place(&self) -> Place {
        let name = Place::from(self.name.span());
        match &self.value {
            Value::Flag => name,
            Value::Single(value) => name.to(Place::of(value)),
            Value::List(close, _) | Value::Positional(close, _) => name.to(*close),
        }
    }

    /// Returns the value of `name = value`.
    pub(crate) fn single(&self) -> Option<&Expr> {
        match &self.value {
            Value::Single(value) => Some(value),
            Value::Flag | Value::List(..) => None,
        }
    }

    /// Reads `name`.
    fn flag(self) -> syn::Result<Place> {
        match self.value {
            Value::Flag => Ok(self.place()),
            _ => {
                Err(error(self.place(), format_args!("`{name}` takes no value; write just `{name}`", name = self.name)))
            }
        }
    }

    /// Reads `name` or `name(arguments)`.
    pub(crate) fn flag_or_list(self, example: &str) -> syn::Result<Arguments> {
        let name = &self.name;
        match self.value {
            Value::Flag => Ok(Arguments::default()),
            Value::List(_, arguments) => Ok(arguments),
            Value::Single(_) | Value::Positional(..) => {
                let message = format!("`{name}` takes no value; write just `{name}`, or `{example}`");
                Err(error(self.place(), message))
            }
        }
    }

    /// Reads `name = expression`.
    fn expression(self, example: &str) -> syn::Result<Expr> {
        match self.value {
            Value::Single(value) => Ok(value),
            _ => Err(error(self.place(), format_args!("`{}` needs a value, like `{example}`", self.name))),
        }
    }

    /// Reads `name = "text"`.
    fn text(self, example: &str) -> syn::Result<LitStr> {
        let name = self.name.clone();
        match self.expression(example)? {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
            other => Err(error(Place::of(&other), format_args!("`{name}` must be a text in quotes, like `{example}`"))),
        }
    }

    /// Reads `name = 10`.
    fn integer(self, example: &str) -> syn::Result<LitInt> {
        let name = self.name.clone();
        match self.expression(example)? {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => Ok(number),
            other => Err(error(Place::of(&other), format_args!("`{name}` must be a whole number, like `{example}`"))),
        }
    }

    /// Reads `name("text", "text")`.
    pub(crate) fn two_texts(self, values: &str, example: &str) -> syn::Result<[LitStr; 2]> {
        let message = format!("`{}` needs {values}, like `{example}`", self.name);
        let place = self.place();
        let text = |value: &Expr| match value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
            _ => None,
        };
        let texts = match self.value {
            Value::Positional(_, values) => values.iter().map(text).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        texts.and_then(|texts| texts.try_into().ok()).ok_or_else(|| error(place, message))
    }

    /// Reads `name(arguments)`.
    pub(crate) fn list(self, example: &str) -> syn::Result<Arguments> {
        let message = format!("`{}` needs its arguments in parentheses, like `{example}`", self.name);
        match self.value {
            Value::List(_, arguments) => Ok(arguments),
            _ => Err(error(self.place(), message)),
        }
    }
}

fn read_value(name: &Ident, input: ParseStream<'_>) -> syn::Result<Expr> {
    if input.is_empty() || input.peek(Token![,]) {
        return Err(error(name.span(), format_args!("`{name}` needs a value after its `=`")));
    }
    input.parse().map(ungrouped)
}

/// Removes the invisible parentheses that `macro_rules!` puts around an expression.
fn ungrouped(expression: Expr) -> Expr {
    match expression {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}
