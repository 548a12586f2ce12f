//! Arguments as they are written, `name`, `name = value` or `name(arguments)`, whatever they mean.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, ExprLit, Lit, LitInt, LitStr, Token, token};

use crate::diagnostic::{Mistakes, Place, error, nearest};

/// One argument.
pub(crate) struct Argument {
    name: Ident,
    value: Value,
}

enum Value {
    Flag,
    Single(Expr),
    List(Span, Arguments),
}

/// A list of arguments, which are taken out of it by their names.
#[derive(Default)]
pub(crate) struct Arguments {
    written: Vec<Argument>,
    known: Vec<&'static str>,
    missing: Vec<syn::Error>,
    /// Whether something between the parentheses could not be read.
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

    /// Reads to the end, over whatever cannot be read.
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

    /// Takes the argument of that name, and reports it if it is repeated.
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

    /// Takes `name = 10`.
    pub(crate) fn integer(&mut self, name: &'static str, example: &str, mistakes: &mut Mistakes) -> Option<LitInt> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.integer(example)))
    }

    /// Takes `name = expression`.
    pub(crate) fn expression(&mut self, name: &'static str, example: &str, mistakes: &mut Mistakes) -> Option<Expr> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.expression(example)))
    }

    /// Takes `name`, and returns where it is written.
    pub(crate) fn flag(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Place> {
        self.take(name, mistakes).and_then(|argument| mistakes.keep(argument.flag()))
    }

    /// Returns whether there is an argument of that name that is not taken yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written.iter().any(|argument| argument.name == name)
    }

    /// Reports arguments that belong elsewhere. Returns whether there are none.
    pub(crate) fn refuse(&mut self, names: &[&str], belongs: &str, mistakes: &mut Mistakes) -> bool {
        let refused: Vec<_> =
            self.written.extract_if(.., |argument| names.iter().any(|name| argument.name == name)).collect();
        for argument in &refused {
            mistakes.report(argument.name.span(), format_args!("`{}` {belongs}", argument.name));
        }
        refused.is_empty()
    }

    /// Demands an argument that is not taken yet.
    pub(crate) fn require(&mut self, name: &str, example: &str, place: Place) {
        if !self.has(name) {
            self.missing.push(error(place, format_args!("`{name}` is missing; write it, like `{example}`")));
        }
    }

    /// Reports what was not taken, or what is missing. Returns whether the list was understood as a whole.
    pub(crate) fn finish(self, mistakes: &mut Mistakes) -> bool {
        for unknown in &self.written {
            mistakes.report(unknown.name.span(), self.unknown(&unknown.name.to_string()));
        }
        let understood = !self.broken && self.written.is_empty();
        // What is missing may be what was not understood.
        if understood {
            for missing in self.missing {
                mistakes.add(missing);
            }
        }
        understood
    }

    fn unknown(&self, name: &str) -> String {
        match nearest(name, self.known.iter().copied()) {
            Some(meant) => format!("unknown argument `{name}`; did you mean `{meant}`?"),
            None => format!("unknown argument `{name}`; there are `{}`", self.known.join("`, `")),
        }
    }
}

/// An argument of the list of that name.
fn first_of(list: &Ident) -> &'static str {
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
        // One token less: it cannot fail, as there is one.
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
            Value::List(parens.span.close(), Arguments::read(&content, first_of(&name), mistakes))
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
            Value::List(close, _) => name.to(*close),
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
            Value::Single(_) => {
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
            other => Err(error(Place::of(&other), format_args!("`{name}` is a text in quotes, like `{example}`"))),
        }
    }

    /// Reads `name = 10`.
    fn integer(self, example: &str) -> syn::Result<LitInt> {
        let name = self.name.clone();
        match self.expression(example)? {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => Ok(number),
            other => Err(error(Place::of(&other), format_args!("`{name}` is a whole number, like `{example}`"))),
        }
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
        return Err(error(name.span(), format_args!("`{name}` needs a value behind its `=`")));
    }
    input.parse().map(ungrouped)
}

/// Takes an expression out of the invisible parentheses that `macro_rules!` puts around it.
fn ungrouped(expression: Expr) -> Expr {
    match expression {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}
