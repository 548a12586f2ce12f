//! The attribute as it is written: arguments, `name`, `name = value` or `name(arguments)`, and the forms that their values have.

mod arguments;
mod suggestion;
mod value;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{End, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, LitInt, Token, token};
use tallygate_rules::{must_be_number, must_be_text};

pub(crate) use self::arguments::{Arguments, WrittenList};
pub(crate) use self::value::{Amount, number};

use crate::diagnostic::{Diagnostics, SpanRange, Spanned, error};

/// One argument. Its name and value are not interpreted yet.
pub(crate) struct Argument {
    name: Ident,
    /// The text of `name`, kept because reading it from the identifier asks the compiler each time.
    text: String,
    value: ArgumentValue,
}

enum ArgumentValue {
    Flag,
    Single(Expr),
    List(Span, ParsedList),
    /// The values of `POSITIONAL`.
    Positional(Span, Vec<Expr>),
}

/// The argument whose values have no names: `subject("network", "{ip:subnet}")`.
const POSITIONAL: &str = "subject";

/// The argument whose list has a value in front: `unit("tokens", cost = 3)`.
const LED: &str = "unit";

/// The arguments that are written with parentheses, each with an example.
const LISTS: [(&str, &str); 6] = [
    ("rule", RULE_EXAMPLE),
    ("concurrency", r#"concurrency(limit = 10, lease = "30s")"#),
    ("prevent_duplicate", r#"prevent_duplicate(per = "5s")"#),
    ("ban", r#"ban(denials = 20, within = "10m", duration = "1h")"#),
    ("subject", SUBJECT_EXAMPLE),
    ("unit", UNIT_EXAMPLE),
];

const RULE_EXAMPLE: &str = r#"rule(count = 10, per = "60s")"#;
pub(crate) const SUBJECT_EXAMPLE: &str = r#"subject("network", "{ip:subnet}")"#;
pub(crate) const UNIT_EXAMPLE: &str = r#"unit("tokens", cost = request.max_tokens)"#;

#[derive(Default)]
struct ParsedList {
    arguments: Vec<Argument>,
    /// The value in front of the arguments of `LED`.
    leading: Option<Lit>,
    /// Whether an argument has a syntax error.
    broken: bool,
}

impl ParsedList {
    fn parse(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Self {
        let mut list = Self::default();
        let read = |input: ParseStream<'_>| {
            list = Self::read(input, "", diagnostics);
            Ok(())
        };
        if let Err(mistake) = read.parse2(tokens) {
            diagnostics.push(mistake);
        }
        list
    }

    /// Stands for a list that cannot be read.
    fn unreadable() -> Self {
        Self { broken: true, ..Self::default() }
    }

    /// Reads a list to its end, and skips arguments with a syntax error.
    fn read(input: ParseStream<'_>, name: &str, diagnostics: &mut Diagnostics) -> Self {
        let mut list = Self::default();
        while !input.is_empty() {
            let is_first = list.leading.is_none() && list.arguments.is_empty();
            let read = if name == LED && is_first && input.peek(Lit) {
                input.parse().map(|value| list.leading = Some(value))
            } else {
                Argument::read(input, name, diagnostics).map(|argument| list.arguments.push(argument))
            };
            if let Err(mistake) = read.and_then(|()| read_separator(input)) {
                diagnostics.push(mistake);
                list.broken = true;
                skip_to_separator(input);
            }
        }
        list
    }
}

/// Returns an example of an argument that belongs in `list`; the list without a name is the attribute itself.
fn example_in(list: &str) -> &'static str {
    match list {
        "" => RULE_EXAMPLE,
        "rule" => "count = 10",
        "ban" => "denials = 20",
        "concurrency" => "limit = 10",
        "unit" => "cost = 3",
        "prevent_duplicate" => r#"per = "5s""#,
        _ => "name = value",
    }
}

/// Returns an example of an argument with parentheses. Within a rule, `unit` has none.
fn example_of(argument: &str, list: &str) -> Option<&'static str> {
    LISTS.iter().find(|(name, _)| list.is_empty() && *name == argument).map(|(_, example)| *example)
}

fn read_separator(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    input.parse::<Token![,]>().map(drop).map_err(|_| input.error("expected `,` between two arguments"))
}

/// Skips to the next argument. Some users separate arguments by `;`.
fn skip_to_separator(input: ParseStream<'_>) {
    let mut is_skipped = false;
    while !input.is_empty() && !is_skipped {
        is_skipped = input.peek(Token![,]) || input.peek(Token![;]);
        // The input is not empty, so this cannot fail.
        let _ = input.parse::<TokenTree>();
    }
}

/// Returns whether the `=` is missing: another sign stands in its place, or the value follows at once.
fn lacks_equals(input: ParseStream<'_>) -> bool {
    input.peek(Token![:])
        || input.peek(Token![=>])
        || input.peek(Token![==])
        || input.peek(Token![->])
        || input.peek(Lit)
}

impl Argument {
    fn read(input: ParseStream<'_>, list: &str, diagnostics: &mut Diagnostics) -> syn::Result<Self> {
        let nameless = |_| {
            let meant = input.fork().parse().ok().and_then(|value| suggestion::unnamed_value(list, &value));
            let example = meant.as_deref().unwrap_or(example_in(list));
            input.error(format_args!("expected the name of an argument, like `{example}`"))
        };
        let name = input.call(Ident::parse_any).map_err(nameless)?;
        let text = name.to_string();
        let value = if input.peek(token::Paren) {
            let content;
            let parens = syn::parenthesized!(content in input);
            if name == POSITIONAL {
                let values: TokenStream = content.parse()?;
                // Values that do not parse count as missing, and the error about missing values shows how they are
                // written.
                let values = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(values).unwrap_or_default();
                ArgumentValue::Positional(parens.span.close(), values.into_iter().map(ungrouped).collect())
            } else {
                ArgumentValue::List(parens.span.close(), ParsedList::read(&content, &text, diagnostics))
            }
        } else if lacks_equals(input) {
            let in_parentheses = example_of(&text, list).map(|example| format!("write `{name}` like `{example}`"));
            let message = in_parentheses.unwrap_or_else(|| format!("expected `=` between `{name}` and its value"));
            return Err(input.error(message));
        } else if let Some(example) =
            example_of(&text, list).filter(|_| input.peek(token::Brace) || input.peek(token::Bracket))
        {
            return Err(input.error(format_args!("the arguments of `{name}` stand in parentheses, like `{example}`")));
        } else if input.parse::<Option<Token![=]>>()?.is_some() {
            ArgumentValue::Single(read_value(&name, input)?)
        } else {
            ArgumentValue::Flag
        };
        Ok(Self { name, text, value })
    }

    fn has_name(&self, name: &str) -> bool {
        self.text == name
    }

    pub(crate) fn span(&self) -> SpanRange {
        let name = SpanRange::from(self.name.span());
        match &self.value {
            ArgumentValue::Flag => name,
            ArgumentValue::Single(value) => name.join(SpanRange::of_tokens(value)),
            ArgumentValue::List(close, _) | ArgumentValue::Positional(close, _) => name.join(*close),
        }
    }

    /// Returns the value of `name = value`.
    pub(crate) fn single_value(&self) -> Option<&Expr> {
        match &self.value {
            ArgumentValue::Single(value) => Some(value),
            ArgumentValue::Flag | ArgumentValue::List(..) | ArgumentValue::Positional(..) => None,
        }
    }

    /// Reads `name`.
    fn flag(self) -> syn::Result<SpanRange> {
        match self.value {
            ArgumentValue::Flag => Ok(self.span()),
            _ => {
                Err(error(self.span(), format_args!("`{name}` takes no value; write just `{name}`", name = self.name)))
            }
        }
    }

    /// Reads `name` or `name(arguments)`.
    fn flag_or_list(self, example: &str) -> syn::Result<ParsedList> {
        let name = &self.name;
        match self.value {
            ArgumentValue::Flag => Ok(ParsedList::default()),
            ArgumentValue::List(_, arguments) => Ok(arguments),
            ArgumentValue::Single(_) | ArgumentValue::Positional(..) => {
                let message = format!("`{name}` takes no value; write just `{name}`, or `{example}`");
                Err(error(self.span(), message))
            }
        }
    }

    /// Reads `name = expression`.
    fn expression(self, example: &str) -> syn::Result<Expr> {
        match self.value {
            ArgumentValue::Single(value) => Ok(value),
            _ => Err(error(self.span(), format_args!("`{}` needs a value, like `{example}`", self.name))),
        }
    }

    /// Reads `name = "text"`.
    fn text(self, example: &str) -> syn::Result<Spanned<String>> {
        let name = self.name.clone();
        match self.expression(example)? {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(Spanned::from(&text)),
            other => {
                let name = name.to_string();
                let meant = suggestion::text(&name, &other);
                Err(error(SpanRange::of_tokens(&other), must_be_text(&name, meant.as_deref().unwrap_or(example))))
            }
        }
    }

    /// Reads `name = 10`.
    fn integer(self, example: &str) -> syn::Result<LitInt> {
        let name = self.name.clone();
        match self.expression(example)? {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => Ok(number),
            other => {
                let name = name.to_string();
                let meant = match &other {
                    Expr::Lit(literal) => suggestion::number(&name, &literal.lit),
                    _ => None,
                };
                Err(error(SpanRange::of_tokens(&other), must_be_number(&name, meant.as_deref().unwrap_or(example))))
            }
        }
    }

    /// Returns the values of `name(value, value)`. Any other form has none.
    pub(crate) fn positional(self) -> Vec<Expr> {
        match self.value {
            ArgumentValue::Positional(_, values) => values,
            _ => Vec::new(),
        }
    }

    /// Reads `name(arguments)`.
    fn list(self) -> syn::Result<ParsedList> {
        let rules = self.single_value().and_then(suggestion::rules);
        let example = rules.as_deref().or(example_of(&self.text, "")).unwrap_or_default();
        let without = if self.single_value().is_some() { " and without `=`" } else { "" };
        let message = format!("`{}` needs its arguments in parentheses{without}, like `{example}`", self.name);
        match self.value {
            ArgumentValue::List(_, arguments) => Ok(arguments),
            _ => Err(error(self.span(), message)),
        }
    }
}

fn read_value(name: &Ident, input: ParseStream<'_>) -> syn::Result<Expr> {
    if input.is_empty() || input.peek(Token![,]) {
        return Err(error(name.span(), format_args!("`{name}` needs a value after its `=`")));
    }
    // Most values are one literal, and reading a literal is much faster than reading an expression.
    if input.peek(Lit) && (input.peek2(Token![,]) || input.peek2(End)) {
        return input.parse().map(|lit| Expr::Lit(ExprLit { attrs: Vec::new(), lit }));
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
