//! The forms of values that several arguments share.

use proc_macro2::Ident;
use syn::{Expr, ExprLit, ExprPath, ExprUnary, Lit, LitInt, Path, UnOp};

use tallygate_rules::must_be_fraction;

use crate::attr::arguments::Arguments;
use crate::attr::meant;
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};

pub(super) const MESSAGE: &str = r#"message = "try again in {@retry_after}""#;

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

/// Takes a whole number, or an expression.
pub(super) fn amount(
    name: &'static str,
    [literal, expression]: [&str; 2],
    arguments: &mut Arguments,
    diagnostics: &mut Diagnostics,
) -> Option<Amount> {
    let amount = arguments.expression(name, literal, diagnostics)?;
    match &amount {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => {
            return Some(Amount::Literal(number.clone()));
        }
        Expr::Lit(_) | Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. }) => {}
        _ => return Some(Amount::Expression(amount)),
    }
    let meant = match &amount {
        Expr::Lit(value) => meant::number(name, &value.lit),
        _ => None,
    };
    let literal = meant.as_deref().unwrap_or(literal);
    let message =
        format!("`{name}` must be a whole number, like `{literal}`, or a `u64` expression, like `{expression}`");
    diagnostics.report(SpanRange::of_tokens(&amount), message);
    None
}

/// A number that may have a fraction, and its place.
pub(crate) type Fraction = Spanned<f64>;

/// Takes a number that may have a fraction.
pub(super) fn fraction(
    name: &'static str,
    example: &str,
    arguments: &mut Arguments,
    diagnostics: &mut Diagnostics,
) -> Option<Fraction> {
    let written = arguments.expression(name, example, diagnostics)?;
    let span = SpanRange::of_tokens(&written);
    let number = match &written {
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) if number.suffix().is_empty() => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.suffix().is_empty() => number.base10_parse().ok(),
        _ => None,
    };
    if number.is_none() {
        diagnostics.report(span, must_be_fraction(name, example));
    }
    number.map(|value| Spanned { value, span })
}

/// Takes an expression of a type that has no literals.
pub(super) fn value(
    name: &'static str,
    [example, type_name]: [&str; 2],
    arguments: &mut Arguments,
    diagnostics: &mut Diagnostics,
) -> Option<Expr> {
    let value = arguments.expression(name, example, diagnostics)?;
    if !matches!(value, Expr::Lit(_)) {
        return Some(value);
    }
    diagnostics
        .report(SpanRange::of_tokens(&value), format_args!("`{name}` must be a `{type_name}`, like `{example}`"));
    None
}

/// Takes a path, a closure, or another expression that may be a function.
pub(super) fn function(
    name: &'static str,
    example: &str,
    arguments: &mut Arguments,
    diagnostics: &mut Diagnostics,
) -> Option<Expr> {
    let value = arguments.expression(name, example, diagnostics)?;
    match value {
        Expr::Lit(_) | Expr::MethodCall(_) | Expr::Macro(_) | Expr::Binary(_) | Expr::Unary(_) => {
            diagnostics.report(
                SpanRange::of_tokens(&value),
                format_args!("`{name}` must be a function or a closure, like `{example}`"),
            );
            None
        }
        _ => Some(value),
    }
}

/// Takes `name = identifier`, the name of such an item.
pub(super) fn identifier(
    name: &'static str,
    [item, example]: [&str; 2],
    arguments: &mut Arguments,
    diagnostics: &mut Diagnostics,
) -> Option<Ident> {
    let value = arguments.expression(name, example, diagnostics)?;
    let identifier = match &value {
        Expr::Path(ExprPath { qself: None, path, .. }) => path.get_ident().cloned(),
        _ => None,
    };
    if identifier.is_none() {
        diagnostics.report(
            SpanRange::of_tokens(&value),
            format_args!("`{name}` must be the name of {item}, like `{example}`"),
        );
    }
    identifier
}

/// Takes `name = ::path`.
pub(super) fn path(
    name: &'static str,
    example: &str,
    arguments: &mut Arguments,
    diagnostics: &mut Diagnostics,
) -> Option<Path> {
    match arguments.expression(name, example, diagnostics)? {
        Expr::Path(ExprPath { qself: None, path, .. }) => Some(path),
        other => {
            diagnostics.report(SpanRange::of_tokens(&other), format_args!("`{name}` must be a path, like `{example}`"));
            None
        }
    }
}
