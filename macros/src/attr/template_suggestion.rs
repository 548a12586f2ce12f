//! Suggests a template for an expression that is written in its place.

use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprMethodCall, Lit, Macro, Token};
use tallygate_rules::{Piece, scan};

/// Methods that do not change the text of a value, so a placeholder needs none of them.
const CONVERSIONS: [&str; 6] = ["to_string", "to_owned", "clone", "as_str", "as_ref", "into"];

pub(crate) fn template(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Macro(call) if call.mac.path.is_ident("format") => formatted(&call.mac),
        value => placeholder(value),
    }
}

fn placeholder(value: &Expr) -> Option<String> {
    Some(format!("{{{}}}", path(value)?))
}

/// Returns the path that a placeholder shows: an argument with fields and methods.
fn path(value: &Expr) -> Option<String> {
    match value {
        Expr::Path(name) => {
            let name = name.path.get_ident()?.to_string();
            // A name that begins with a capital is a constant or a type, and no argument.
            name.starts_with(|first: char| !first.is_uppercase()).then_some(name)
        }
        Expr::Field(field) => {
            let member = match &field.member {
                syn::Member::Named(name) => name.to_string(),
                syn::Member::Unnamed(index) => index.index.to_string(),
            };
            Some(format!("{}.{member}", path(&field.base)?))
        }
        Expr::MethodCall(call) => method(call),
        Expr::Reference(reference) => path(&reference.expr),
        Expr::Paren(paren) => path(&paren.expr),
        _ => None,
    }
}

fn method(call: &ExprMethodCall) -> Option<String> {
    let ExprMethodCall { receiver, method, turbofish, args, .. } = call;
    let receiver = path(receiver).filter(|_| args.is_empty() && turbofish.is_none())?;
    let is_conversion = CONVERSIONS.iter().any(|conversion| method == conversion);
    Some(if is_conversion { receiver } else { format!("{receiver}.{method}()") })
}

/// Returns the template of a `format!` whose values are arguments and whose placeholders have no options.
fn formatted(call: &Macro) -> Option<String> {
    let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(call.tokens.clone()).ok()?;
    let mut arguments = arguments.into_iter();
    let Some(Expr::Lit(ExprLit { lit: Lit::Str(format), .. })) = arguments.next() else { return None };
    let values: Vec<_> = arguments.collect();
    let mut next = values.iter();
    let format = format.value();
    let piece = |piece| match piece {
        Piece::Text(text) => Some(text.replace('{', "{{").replace('}', "}}")),
        Piece::Braced("") => placeholder(next.next()?),
        Piece::Braced(text) => match text.parse::<usize>() {
            Ok(index) => placeholder(values.get(index)?),
            Err(_) => placeholder(&syn::parse_str(text).ok()?),
        },
    };
    scan(&format).ok()?.into_iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(expression: &str) -> Option<String> {
        template(&syn::parse_str(expression).expect("an expression"))
    }

    #[test]
    fn an_argument_with_fields_and_methods_is_a_placeholder() {
        for (written, meant) in [
            ("phone", "{phone}"),
            ("&user.id", "{user.id}"),
            ("self.pair.0.ip()", "{self.pair.0.ip()}"),
            ("(&*user.name).to_string()", ""),
            ("(&user.name).clone().to_string()", "{user.name}"),
        ] {
            assert_eq!(suggested(written).unwrap_or_default(), meant, "{written}");
        }
    }

    #[test]
    fn a_format_is_a_template_of_its_values() {
        for (written, meant) in [
            (r#"format!("sms:{}", user.id)"#, "sms:{user.id}"),
            (r#"format!("{1}/{0}/{phone}{{\"", a, &b.c())"#, r#"{b.c()}/{a}/{phone}{{""#),
            (r#"format!("all")"#, "all"),
        ] {
            assert_eq!(suggested(written).as_deref(), Some(meant), "{written}");
        }
    }

    #[test]
    fn what_a_template_cannot_show_has_no_suggestion() {
        for written in [
            "KEY",
            "keys::SMS",
            "user.name(1)",
            "users[0]",
            "a + b",
            r#"format!("{:?}", a)"#,
            r#"format!("{a:>3}")"#,
            r#"format!("{}")"#,
            r#"format!("{}", n = 1)"#,
            r#"format!("{1}", a)"#,
            r#"format!("{")"#,
            "format!(KEY)",
            r#"concat!("a", "b")"#,
        ] {
            assert_eq!(suggested(written), None, "{written}");
        }
    }
}
