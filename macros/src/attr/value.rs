//! The forms of values: each method takes an argument and reads its value, or reports what is wrong with it.

use std::fmt::Display;
use std::time::Duration;

use proc_macro2::Ident;
use quote::ToTokens as _;
use syn::{Expr, ExprLit, ExprPath, ExprUnary, Lit, LitInt, Path, UnOp};
use tallygate_rules::{ArgumentSource, TemplateUse, read_duration};

use crate::attr::Argument;
use crate::attr::arguments::Arguments;
use crate::attr::suggestion;
use crate::diagnostic::{SpanRange, Spanned};
use crate::template::SpannedTemplate;

/// The number of calls that a rule admits, or that this call counts as.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "spans are larger in the tests, which read where they are")]
pub(crate) enum Amount {
    /// A number that is known at compile time.
    Literal(LitInt),
    /// An expression that every call evaluates.
    Expression(Expr),
}

impl Amount {
    pub(crate) fn span(&self) -> SpanRange {
        match self {
            Self::Literal(number) => number.span().into(),
            Self::Expression(expression) => SpanRange::of_tokens(expression),
        }
    }
}

/// Returns the number, or the greatest one if it does not fit: the check of rules reports that better.
pub(crate) fn number(literal: &LitInt) -> u64 {
    literal.base10_parse().unwrap_or(u64::MAX)
}

impl Arguments<'_> {
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<SpanRange> {
        self.read(name, Argument::flag)
    }

    /// Takes `name = "text"`.
    pub(crate) fn text(&mut self, name: &'static str, example: &str) -> Option<Spanned<String>> {
        self.read(name, |argument| argument.text(example))
    }

    /// Takes `name = "60s"`.
    pub(crate) fn duration(&mut self, name: &'static str, example: &str) -> Option<Spanned<Duration>> {
        self.parsed(name, example, |text| read_duration(name, text))
    }

    /// Takes `name = "text"`, and parses the text.
    pub(crate) fn parsed<T, E: Display>(
        &mut self,
        name: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Spanned<T>> {
        let Spanned { value, span } = self.text(name, example)?;
        let parsed = parse(&value).map_err(|why| self.diagnostics.report(span, why));
        parsed.ok().map(|value| Spanned { value, span })
    }

    /// Takes `name = "text with {placeholders}"`, and suggests it for an expression that means the same.
    pub(crate) fn template(
        &mut self,
        name: &'static str,
        example: &str,
        template_use: TemplateUse,
    ) -> Option<SpannedTemplate> {
        let argument = self.take(name)?;
        let meant = argument.single_value().and_then(suggestion::template).map(|text| format!("{name} = {text:?}"));
        let text = argument.text(meant.as_deref().unwrap_or(example));
        let text = self.diagnostics.ok_or_report(text)?;
        SpannedTemplate::parse(text, template_use, self.diagnostics)
    }

    /// Takes `message = "text with {placeholders}"`.
    pub(crate) fn message(&mut self, template_use: TemplateUse) -> Option<SpannedTemplate> {
        self.template("message", r#"message = "try again in {@retry_after}""#, template_use)
    }

    /// Takes `name = 10`.
    pub(crate) fn integer(&mut self, name: &'static str, example: &str) -> Option<u64> {
        self.read(name, |argument| argument.integer(example)).map(|literal| number(&literal))
    }

    pub(crate) fn amount(&mut self, name: &'static str, [literal, expression]: [&str; 2]) -> Option<Amount> {
        let amount = self.expression(name, literal)?;
        match &amount {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => {
                return Some(Amount::Literal(number.clone()));
            }
            Expr::Lit(_) | Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. }) => {}
            _ => return Some(Amount::Expression(amount)),
        }
        let meant = match &amount {
            Expr::Lit(value) => suggestion::number(name, &value.lit),
            _ => None,
        };
        let literal = meant.as_deref().unwrap_or(literal);
        let message =
            format!("`{name}` must be a whole number, like `{literal}`, or a `u64` expression, like `{expression}`");
        self.diagnostics.report(SpanRange::of_tokens(&amount), message);
        None
    }

    /// Takes a number that may have a fraction.
    pub(crate) fn fraction(&mut self, name: &'static str, example: &str) -> Option<Spanned<f64>> {
        self.form(name, example, "a number", |value| {
            let number = match value {
                Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) if number.suffix().is_empty() => {
                    number.base10_parse()
                }
                Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => number.base10_parse(),
                _ => return None,
            };
            Some(Spanned { value: number.ok()?, span: SpanRange::of_tokens(value) })
        })
    }

    pub(crate) fn expression(&mut self, name: &'static str, example: &str) -> Option<Expr> {
        self.read(name, |argument| argument.expression(example))
    }

    /// Takes an expression that is no literal, because its type has none.
    pub(crate) fn value(&mut self, name: &'static str, [example, type_name]: [&str; 2]) -> Option<Expr> {
        let is_value = |value: &Expr| !matches!(value, Expr::Lit(_));
        self.form(name, example, format_args!("a `{type_name}`"), |value| is_value(value).then(|| value.clone()))
    }

    /// Takes a path, a closure, or another expression that can be a function.
    pub(crate) fn function(&mut self, name: &'static str, example: &str) -> Option<Expr> {
        self.form(name, example, "a function or a closure", |value| match value {
            Expr::Lit(_) | Expr::MethodCall(_) | Expr::Macro(_) | Expr::Binary(_) | Expr::Unary(_) => None,
            function => Some(function.clone()),
        })
    }

    /// Takes `name = identifier`, where the identifier names an item.
    pub(crate) fn identifier(&mut self, name: &'static str, [item, example]: [&str; 2]) -> Option<Ident> {
        self.form(name, example, format_args!("the name of {item}"), |value| {
            let name = path(value)?.get_ident()?;
            // `self`, `Self`, `super` and `crate` are paths, but no item can have such a name.
            syn::parse2(name.to_token_stream()).ok()
        })
    }

    /// Takes `name = ::path`.
    pub(crate) fn path(&mut self, name: &'static str, example: &str) -> Option<Path> {
        self.form(name, example, "a path", |value| path(value).cloned())
    }

    /// Takes an expression that `read` accepts, and reports any other as not being `form`.
    fn form<T>(
        &mut self,
        name: &'static str,
        example: &str,
        form: impl Display,
        read: impl FnOnce(&Expr) -> Option<T>,
    ) -> Option<T> {
        let expression = self.expression(name, example)?;
        let value = read(&expression);
        if value.is_none() {
            let span = SpanRange::of_tokens(&expression);
            self.diagnostics.report(span, format_args!("`{name}` must be {form}, like `{example}`"));
        }
        value
    }

    fn read<T>(&mut self, name: &'static str, read: impl FnOnce(Argument) -> syn::Result<T>) -> Option<T> {
        let argument = self.take(name)?;
        self.diagnostics.ok_or_report(read(argument))
    }
}

fn path(expression: &Expr) -> Option<&Path> {
    match expression {
        Expr::Path(ExprPath { qself: None, path, .. }) => Some(path),
        _ => None,
    }
}

impl ArgumentSource for Arguments<'_> {
    fn text(&mut self, name: &'static str, example: &str) -> Option<String> {
        Arguments::text(self, name, example).map(|text| text.value)
    }

    fn number(&mut self, name: &'static str, example: &str) -> Option<u64> {
        self.integer(name, example)
    }

    fn report(&mut self, argument: &'static str, message: String) {
        self.diagnostics.report(self.span_of(argument), message);
    }
}
