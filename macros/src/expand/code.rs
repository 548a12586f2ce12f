//! Code in documentation: as spans, and spaced as people write it.

use quote::ToTokens;

/// Makes a span of code, whatever backticks the text contains.
pub(super) fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let text = text.replace(char::is_control, " ");
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Makes a span of code of an expression, with spaces between words and behind commas.
pub(super) fn expression(expression: &impl ToTokens) -> String {
    code(&spaced(expression))
}

fn spaced(expression: &impl ToTokens) -> String {
    let text = expression.to_token_stream().to_string();
    let tokens: Vec<_> = text.split(' ').collect();
    let with_space = |pair: &[&str]| {
        let between_words = pair[0].ends_with(|c| is_wordy(c) || c == ')') && pair[1].starts_with(is_wordy);
        if between_words || pair[0].ends_with(',') { format!(" {}", pair[1]) } else { pair[1].to_owned() }
    };
    tokens.first().map(|&first| first.to_owned()).into_iter().chain(tokens.windows(2).map(with_space)).collect()
}

fn is_wordy(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_one_span_of_code() {
        assert_eq!(code("sms:{phone}"), "`sms:{phone}`");
        assert_eq!(code("`a``"), "``` `a`` ```");
        assert_eq!(code("a\nb"), "`a b`");
    }

    #[test]
    fn an_expression_is_spaced_as_people_write_it() {
        let shown = |expression| spaced(&syn::parse_str::<syn::Expr>(expression).unwrap());
        assert_eq!(shown("user.plan.calls( )"), "user.plan.calls()");
        assert_eq!(shown("limits[&kind].max(1, 2) as u64"), "limits[&kind].max(1, 2) as u64");
    }
}
