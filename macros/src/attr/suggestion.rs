//! Suggests how to write a value that is written as other libraries or Rust have it.

use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprMethodCall, Lit, Macro, Member, Token};
use tallygate_rules::{
    Piece, argument_meant, attribute_form, duration_meant, parse_duration, rule_meant, scan, snake_case,
};

/// The arguments whose texts are durations.
const DURATIONS: [&str; 9] =
    ["per", "reset_after", "lease", "within", "duration", "deadline", "wait", "prefetch", "longest_pause"];

/// The arguments whose texts are single words.
const WORDS: [&str; 3] = ["algorithm", "on_outage", "unit"];

/// Methods that do not change the text of a value, so a placeholder needs none of them.
const CONVERSIONS: [&str; 6] = ["to_string", "to_owned", "clone", "as_str", "as_ref", "into"];

/// Returns the rules that a text, or a list of texts, stands for: `rule(count = 10, per = "1m")` for `"10/m"`.
pub(super) fn rules(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(attribute_form(&rule_meant(&text.value())?)),
        Expr::Array(list) if !list.elems.is_empty() => {
            Some(list.elems.iter().map(rules).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Expr::Reference(reference) => rules(&reference.expr),
        Expr::Paren(paren) => rules(&paren.expr),
        _ => None,
    }
}

/// Returns the rule that an argument like `per_second = 10` stands for: `rule(count = 10, per = "1s")`, or only the
/// arguments of the rule if it stands in a `rule(…)`.
pub(super) fn rate(name: &str, count: &Expr, known: &[&str]) -> Option<String> {
    let Expr::Lit(ExprLit { lit: Lit::Int(count), .. }) = count else { return None };
    let rule = attribute_form(&rule_meant(&format!("{} {}", count.base10_digits(), name.replace('_', " ")))?);
    if known.contains(&"rule") {
        return Some(rule);
    }
    without_parentheses(&rule).filter(|_| known.contains(&"count"))
}

/// Returns the argument with its value as a text: `per = "60s"` for `60`.
pub(super) fn text(name: &str, value: &Expr) -> Option<String> {
    let text = match value {
        _ if DURATIONS.contains(&name) => return argument_meant(name, &duration(value)?),
        Expr::Path(path) if WORDS.contains(&name) => snake_case(&path.path.segments.last()?.ident.to_string()),
        _ if name == "name" => dotted_name(value)?,
        _ => return None,
    };
    Some(format!("{name} = {text:?}"))
}

/// Returns the argument with its value as a number: `count = 10` for `"10"`, and `count = 10, per = "1m"` for `"10/m"`.
pub(super) fn number(name: &str, value: &Lit) -> Option<String> {
    match value {
        Lit::Str(text) if text.value().parse::<u64>().is_ok() => Some(format!("{name} = {}", text.value())),
        Lit::Str(text) if name == "count" => {
            without_parentheses(&rule_meant(&text.value()).map(|rule| attribute_form(&rule))?)
        }
        Lit::Float(number) => Some(format!("{name} = {}", number.base10_digits().strip_suffix(".0")?)),
        Lit::Int(number) if !number.suffix().is_empty() => Some(format!("{name} = {}", number.base10_digits())),
        _ => None,
    }
}

/// Returns the argument that a value without a name probably is. `list` is empty for the attribute itself.
pub(super) fn unnamed_value(list: &str, value: &Lit) -> Option<String> {
    let text = match value {
        Lit::Int(number) => {
            let number = number.base10_digits();
            return Some(match list {
                "" => format!("rule(count = {number}, per = \"60s\")"),
                "rule" => format!("count = {number}"),
                "concurrency" => format!("limit = {number}"),
                "ban" => format!("denials = {number}"),
                "unit" => format!("cost = {number}"),
                _ => return None,
            });
        }
        Lit::Str(text) => text.value(),
        _ => return None,
    };
    let is_template = text.contains('{') && list != "ban";
    let duration = parse_duration(&text).ok().map(|_| text.clone()).or_else(|| duration_meant(&text));
    match (list, duration) {
        _ if is_template => Some(format!("key = {text:?}")),
        ("rule" | "prevent_duplicate", Some(per)) => Some(format!("per = {per:?}")),
        ("concurrency", Some(lease)) => Some(format!("lease = {lease:?}")),
        ("ban", Some(within)) => Some(format!("within = {within:?}")),
        ("rule", None) => without_parentheses(&attribute_form(&rule_meant(&text)?)),
        ("", _) => Some(attribute_form(&rule_meant(&text)?)),
        _ => None,
    }
}

fn without_parentheses(rule: &str) -> Option<String> {
    Some(rule.strip_prefix("rule(")?.strip_suffix(')')?.to_owned())
}

/// Returns the text of a duration that is written as `60`, `1.5` or `Duration::from_secs(60)`.
fn duration(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_digits().to_owned()),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => Some(format!("{}s", number.base10_digits())),
        Expr::Call(call) => {
            let (Expr::Path(function), [Expr::Lit(ExprLit { lit: Lit::Int(number), .. })]) =
                (&*call.func, &call.args.iter().cloned().collect::<Vec<_>>()[..])
            else {
                return None;
            };
            let unit = match &*function.path.segments.last()?.ident.to_string() {
                "from_secs" | "seconds" | "secs" => "s",
                "from_millis" | "milliseconds" | "millis" => "ms",
                "from_mins" | "minutes" | "mins" => "m",
                "from_hours" | "hours" => "h",
                "from_days" | "days" => "d",
                _ => return None,
            };
            Some(format!("{}{unit}", number.base10_digits()))
        }
        _ => None,
    }
}

/// Reads a path of fields, like `sms.send`.
fn dotted_name(value: &Expr) -> Option<String> {
    match value {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => match &field.member {
            Member::Named(name) => Some(format!("{}.{name}", dotted_name(&field.base)?)),
            Member::Unnamed(_) => None,
        },
        _ => None,
    }
}

/// Returns the template that an expression stands for: `sms:{phone}` for `format!("sms:{phone}")`.
pub(super) fn template(expression: &Expr) -> Option<String> {
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
                Member::Named(name) => name.to_string(),
                Member::Unnamed(index) => index.index.to_string(),
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
    use syn::parse_str;

    use super::*;

    #[test]
    fn a_value_of_another_type_is_written_as_the_text_that_it_means() {
        for (name, value, meant) in [
            ("per", "60", r#"per = "60s""#),
            ("wait", "1.5", r#"wait = "1500ms""#),
            ("lease", "Duration::from_secs(30)", r#"lease = "30s""#),
            ("deadline", "std::time::Duration::from_millis(50)", r#"deadline = "50ms""#),
            ("algorithm", "Algorithm::TokenBucket", r#"algorithm = "token_bucket""#),
            ("on_outage", "local", r#"on_outage = "local""#),
            ("unit", "tokens", r#"unit = "tokens""#),
            ("name", "sms.send", r#"name = "sms.send""#),
            ("per", "WINDOW", ""),
            ("tz", "UTC", ""),
        ] {
            assert_eq!(text(name, &parse_str(value).unwrap()).unwrap_or_default(), meant, "{name} = {value}");
        }
    }

    #[test]
    fn a_window_in_a_name_is_the_window_of_a_rule() {
        let meant = |name, known: &[&str]| rate(name, &parse_str("10").unwrap(), known).unwrap_or_default();
        for name in ["per_second", "rps", "requests_per_second", "calls_per_1s"] {
            assert_eq!(meant(name, &["rule"]), r#"rule(count = 10, per = "1s")"#, "{name}");
            assert_eq!(meant(name, &["count", "per"]), r#"count = 10, per = "1s""#, "{name}");
        }
        assert_eq!(meant("per_second", &["denials", "within"]), "");
        assert_eq!(meant("burst", &["rule"]), "");
    }

    #[test]
    fn a_value_without_a_name_is_the_argument_that_it_fits() {
        for (list, value, meant) in [
            ("", r#""10/m""#, r#"rule(count = 10, per = "1m")"#),
            ("", "10", r#"rule(count = 10, per = "60s")"#),
            ("", r#""{phone}""#, r#"key = "{phone}""#),
            ("rule", r#""10 per minute""#, r#"count = 10, per = "1m""#),
            ("rule", "10", "count = 10"),
            ("rule", r#""1 minute""#, r#"per = "1m""#),
            ("concurrency", r#""30s""#, r#"lease = "30s""#),
            ("ban", "20", "denials = 20"),
            ("prevent_duplicate", r#""5s""#, r#"per = "5s""#),
            ("prevent_duplicate", r#""{order.id}""#, r#"key = "{order.id}""#),
            ("", r#""sms""#, ""),
        ] {
            assert_eq!(unnamed_value(list, &parse_str(value).unwrap()).unwrap_or_default(), meant, "{list} {value}");
        }
    }

    fn suggested(expression: &str) -> Option<String> {
        template(&parse_str(expression).unwrap())
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
