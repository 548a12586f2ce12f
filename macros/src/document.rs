//! The limits in words, as a section of the function's documentation.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use tallygate_rules::{Role, Rule, format_duration, implied_by};

use crate::attr::Amount;
use crate::model::Model;
use crate::rule::RuleModel;
use crate::shape::Function;
use crate::template::Template;

const HEADING: &str = "# Rate limits";

/// Returns the section as an attribute, to stand behind the documentation that is there.
///
/// A function without documentation gets it in its generated documentation only: in a build it would hide from the lint
/// `missing_docs` that there is none.
pub(crate) fn attributes(model: &Model, function: &Function) -> TokenStream {
    let written: Vec<_> = function.documentation().collect();
    let has_heading = written.iter().flat_map(|text| text.lines()).any(|line| line.trim() == HEADING);
    let section = if has_heading { limits(model) } else { format!("{HEADING}\n\n{}", limits(model)) };
    if written.is_empty() {
        quote!(#[cfg_attr(doc, doc = #section)])
    } else {
        let section = format!("\n{section}");
        quote!(#[doc = #section])
    }
}

fn limits(model: &Model) -> String {
    let groups = [None].into_iter().chain(model.others().into_iter().map(Some));
    let mut paragraphs: Vec<_> = groups.filter_map(|group| limits_of(model, group)).collect();
    if let Some(policy) = &model.policy {
        paragraphs.push(format!("{}: those of the policy {}.", whom(model.key.as_ref()), code(&compact(policy))));
    }
    paragraphs.push(beyond(model));
    paragraphs.extend(around(model));
    paragraphs.join("\n\n")
}

/// The rules of one subject, the main one or another with its label and its key.
fn limits_of(model: &Model, group: Option<(&str, &Template)>) -> Option<String> {
    let mine = |rule: &&RuleModel| model.label(rule) == group.map(|(label, _)| label);
    let models: Vec<_> = model.rules.iter().filter(mine).collect();
    let rules: Vec<Rule> = models.iter().map(|model| model.rule.clone()).collect();
    let lines: Vec<_> = (0..models.len()).map(|index| format!("* {}", words(models[index], index, &rules))).collect();
    let key = group.map_or(model.key.as_ref(), |(_, key)| Some(key));
    (!lines.is_empty()).then(|| format!("{}:\n\n{}", whom(key), lines.join("\n")))
}

fn whom(key: Option<&Template>) -> String {
    match key.filter(|key| key.placeholders().next().is_some()) {
        Some(key) => format!("Each {} has limits of its own", code(&key.text)),
        None => "All calls together are limited".to_owned(),
    }
}

/// What becomes of a call that the rules do not admit.
fn beyond(model: &Model) -> String {
    let rejected = "the function does not run, and nothing is counted";
    match &model.wait {
        _ if model.shadow.is_some() => {
            "The limits are tried out: a call beyond any of them is reported, and the function runs all the same."
                .into()
        }
        Some(wait) => format!(
            "A call beyond any of them waits up to {} for admission, and else is rejected: {rejected}.",
            code(&format_duration(wait.value))
        ),
        None => format!("A call beyond any of them is rejected: {rejected}."),
    }
}

/// What else there is to know of a call.
fn around(model: &Model) -> impl Iterator<Item = String> {
    let ban = model.ban.as_ref().map(|model| model.ban).map(|ban| {
        let banned = model.key.as_ref().map_or_else(|| "everybody".to_owned(), |key| code(&key.text));
        let [within, duration] = [ban.within(), ban.duration()].map(|length| code(&format_duration(length)));
        format!("After {} denials within {within}, {banned} is banned for {duration}.", ban.denials())
    });
    let cost = model.cost.as_ref().map(|cost| match cost {
        Amount::Literal(cost) => format!("Each call counts as {cost}."),
        Amount::Expression(cost) => format!("Each call counts as {}.", code(&compact(cost))),
    });
    let refund = model.refund_if.as_ref().map(|refund_if| {
        format!("A call for whose result {} holds is not counted in the end.", code(&compact(refund_if)))
    });
    let skip = model.skip_if.as_ref().map(|skip_if| format!("Calls with {} are not limited.", code(&compact(skip_if))));
    [ban, cost, refund, skip].into_iter().flatten()
}

fn words(model: &RuleModel, index: usize, rules: &[Rule]) -> String {
    let rule = &model.rule;
    let limited = match (rule.role(), rule.per()) {
        (Role::Duplicate, Some(per)) => {
            format!("not again within {}, which is a duplicate", code(&format_duration(per)))
        }
        _ => format!("at most {}", limit(rule)),
    };
    let count = model.count.as_ref().map(|count| format!(", where {} is {}", code("n"), code(&compact(count))));
    let stricter = implied_by(rules, index).and_then(|stricter| rules.get(stricter));
    let redundant = stricter.map(|stricter| format!(", which at most {} already ensures", limit(stricter)));
    let name = rule.name().map(|name| format!(" ({})", code(name)));
    [Some(limited), count, redundant, name].into_iter().flatten().collect()
}

/// The rule without its name.
fn limit(rule: &Rule) -> String {
    code(&format!("{rule:#}"))
}

/// Makes a span of code, whatever backticks there are in it.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let text = text.replace(char::is_control, " ");
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Writes an expression as one would: with spaces between words, and behind commas.
fn compact(expression: &impl ToTokens) -> String {
    let text = expression.to_token_stream().to_string();
    let words: Vec<_> = text.split(' ').collect();
    let spaced = |pair: &[&str]| {
        let between_words = pair[0].ends_with(|c| is_wordy(c) || c == ')') && pair[1].starts_with(is_wordy);
        if between_words || pair[0].ends_with(',') { format!(" {}", pair[1]) } else { pair[1].to_owned() }
    };
    words.first().map(|&first| first.to_owned()).into_iter().chain(words.windows(2).map(spaced)).collect()
}

fn is_wordy(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_code_whatever_it_holds() {
        assert_eq!(code("sms:{phone}"), "`sms:{phone}`");
        assert_eq!(code("`a``"), "``` `a`` ```");
        assert_eq!(code("a\nb"), "`a b`");
    }

    #[test]
    fn an_expression_is_written_as_one_would() {
        let shown = |expression| compact(&syn::parse_str::<syn::Expr>(expression).unwrap());
        assert_eq!(shown("user.plan.calls( )"), "user.plan.calls()");
        assert_eq!(shown("limits[&kind].max(1, 2) as u64"), "limits[&kind].max(1, 2) as u64");
    }
}
