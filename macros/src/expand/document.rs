//! The limits in words, as a section of the function's documentation.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use tallygate_rules::{Role, Rule, counted_in_words, format_duration, implied_by, limit_in_words};

use crate::attr::Amount;
use crate::model::{Model, OtherSubject, RuleModel, UnitModel, UnitSettlement};
use crate::shape::Function;
use crate::template::SpannedTemplate;

const HEADING: &str = "# Rate limits";

#[derive(Clone, Copy, PartialEq)]
enum Reader {
    /// Knows the keys and the expressions of the code.
    Developer,
    /// Does not know the code of the service.
    Client,
}

/// Returns the section as an attribute that follows the documentation of the function.
///
/// A function without documentation also gets a summary, because a heading alone documents nothing. Both appear only in
/// generated documentation: in a build, they would hide missing documentation from the lint `missing_docs`. So does the
/// section of a handler whose documentation `#[utoipa::path]` publishes, because clients do not know the code.
pub(super) fn attributes(model: &Model, function: &Function) -> TokenStream {
    let written: Vec<_> = function.documentation().collect();
    let has_heading = written.iter().flat_map(|text| text.lines()).any(|line| line.trim() == HEADING);
    let section = if has_heading { limits(model) } else { format!("{HEADING}\n\n{}", limits(model)) };
    let is_undocumented = written.is_empty();
    let section = if is_undocumented { format!("{}\n\n{section}", summary(model)) } else { format!("\n{section}") };
    if is_undocumented || function.attributes_named("path").next().is_some() {
        quote!(#[cfg_attr(doc, doc = #section)])
    } else {
        quote!(#[doc = #section])
    }
}

struct Group<'m> {
    key: Option<&'m SpannedTemplate>,
    rules: Vec<&'m RuleModel>,
}

/// Groups the rules by their keys. Two tallies with one key are one group for the reader.
fn groups(model: &Model) -> Vec<Group<'_>> {
    let main = model.key.as_ref();
    let mut groups = vec![Group { key: main, rules: Vec::new() }];
    for rule in &model.rules {
        let key = model.own_key(rule).or(main);
        match groups.iter_mut().find(|group| text(group.key) == text(key)) {
            Some(group) => group.rules.push(rule),
            None => groups.push(Group { key, rules: vec![rule] }),
        }
    }
    groups.retain(|group| !group.rules.is_empty());
    groups
}

fn text(key: Option<&SpannedTemplate>) -> Option<&str> {
    key.map(|key| key.text.as_str())
}

fn summary(model: &Model) -> String {
    let limited = if model.shadow.is_some() { "Limited in shadow" } else { "Limited" };
    if let Some(policy) = &model.policy {
        let scope = Reader::Developer.scope(model.key.as_ref());
        return format!("{limited} by the policy {}, {scope}.", expression(policy));
    }
    let group = |group: &Group<'_>| {
        let rules: Vec<_> = group.rules.iter().map(|model| limit(&model.rule)).collect();
        format!("to {} {}", rules.join(", "), Reader::Developer.scope(group.key))
    };
    let groups: Vec<_> = groups(model).iter().map(group).collect();
    format!("{limited} {}.", groups.join(", and "))
}

fn limits(model: &Model) -> String {
    let mut paragraphs = rules(model, Reader::Developer);
    paragraphs.push(excess_text(model));
    paragraphs.extend(options(model));
    paragraphs.join("\n\n")
}

/// Returns the limits by which a call is rejected, in words for clients.
pub(super) fn rejection_text(model: &Model) -> String {
    let mut paragraphs = rules(model, Reader::Client);
    paragraphs.extend(ban(model, Reader::Client));
    paragraphs.join("\n\n")
}

fn rules(model: &Model, reader: Reader) -> Vec<String> {
    let mut groups = groups(model);
    if reader == Reader::Client {
        // No client is rejected by a rule in shadow.
        for group in &mut groups {
            group.rules.retain(|model| !model.rule.is_shadow());
        }
        groups.retain(|group| !group.rules.is_empty());
    }
    let mut paragraphs: Vec<_> = groups.iter().map(|group| group.list(reader)).collect();
    if let Some(policy) = &model.policy {
        let main_scope = reader.scope(model.key.as_ref());
        paragraphs.push(match reader {
            Reader::Developer => format!("The limits of the policy {} hold {main_scope}.", expression(policy)),
            Reader::Client => format!("The limits hold {main_scope}."),
        });
        for OtherSubject { label, key } in model.other_subjects() {
            let scope = reader.scope(key);
            paragraphs.push(match reader {
                Reader::Developer => format!("Its limits on the subject {} hold {scope}.", code(label)),
                Reader::Client => format!("Others hold {scope}."),
            });
        }
    }
    paragraphs
}

impl Group<'_> {
    fn list(&self, reader: Reader) -> String {
        let rules: Vec<Rule> = self.rules.iter().map(|model| model.rule.clone()).collect();
        let item = |(position, model): (usize, &&RuleModel)| format!("* {}", item(model, position, &rules, reader));
        let items: Vec<_> = self.rules.iter().enumerate().map(item).collect();
        let scope = reader.scope(self.key);
        let (first, rest) = scope.split_at(1);
        format!("{}{rest}:\n\n{}", first.to_uppercase(), items.join("\n"))
    }
}

impl Reader {
    fn scope(self, key: Option<&SpannedTemplate>) -> String {
        let counted = key.and_then(|key| self.counted(key));
        counted.map_or("for all calls together".to_owned(), |counted| format!("for each {counted}"))
    }

    /// Returns what a key separates; `None` if it counts all calls together.
    fn counted(self, key: &SpannedTemplate) -> Option<String> {
        match self {
            Self::Developer => key.placeholders().next().map(|_| code(&key.text)),
            Self::Client => counted_in_words(&key.text),
        }
    }
}

/// Says what happens to a call that the rules do not admit.
fn excess_text(model: &Model) -> String {
    let rejected = "the function does not run, and nothing is counted";
    match &model.wait {
        _ if model.shadow.is_some() => {
            "The limits are in shadow: a call beyond any of them is reported, and the function runs all the same."
                .into()
        }
        Some(wait) => format!(
            "A call beyond any of them waits up to {} for admission, and is rejected if that takes longer: {rejected}.",
            code(&format_duration(wait.value))
        ),
        None => format!("A call beyond any of them is rejected: {rejected}."),
    }
}

fn ban(model: &Model, reader: Reader) -> Option<String> {
    let ban = model.ban.as_ref()?.ban;
    let banned = match (model.key.as_ref().and_then(|key| reader.counted(key)), reader) {
        (Some(counted), Reader::Developer) => format!("{counted} is banned"),
        (Some(counted), Reader::Client) => format!("the {counted} is banned"),
        (None, _) => "all calls are banned".to_owned(),
    };
    let within = code(&format_duration(ban.within()));
    let duration = code(&format_duration(ban.duration()));
    Some(format!("After {} denials within {within}, {banned} for {duration}.", ban.denials()))
}

fn options(model: &Model) -> impl Iterator<Item = String> {
    let cost = model.cost.as_ref().map(|cost| match cost {
        Amount::Literal(cost) => format!("Each call counts as {cost}."),
        Amount::Expression(cost) if model.allow_zero_cost.is_some() => {
            format!("A call counts as {}.", expression(cost))
        }
        Amount::Expression(cost) => format!("A call counts as {}, and as 1 at least.", expression(cost)),
    });
    let refund = model.refund_if.as_ref().map(|refund_if| {
        let alone = model.refund_key.as_ref().map(|key| format!(" on {} alone", code(&key.text)));
        format!("A call is refunded{} if {} holds for its result.", alone.unwrap_or_default(), expression(refund_if))
    });
    let settle = model.settle.as_ref();
    let settle = settle.map(|settle| format!("Afterwards it counts as what it has used: {}.", expression(settle)));
    let units = model.units.iter().filter_map(unit_text);
    let skip = model.skip_if.as_ref().map(|skip_if| format!("Calls with {} are not limited.", expression(skip_if)));
    let outage = model.on_outage.as_ref();
    let outage = outage.map(|on_outage| format!("While Redis is away, {}.", on_outage.value.in_words()));
    let companion = model.check_fn.as_ref().map(|check_fn| {
        format!("{} returns the check of a call, to see where the limits stand.", code(&check_fn.unraw().to_string()))
    });
    let of_calls = [ban(model, Reader::Developer), cost, settle];
    let others = [refund, skip, outage, companion];
    of_calls.into_iter().flatten().chain(units).chain(others.into_iter().flatten())
}

/// Says what a call uses of a unit.
fn unit_text(unit: &UnitModel) -> Option<String> {
    let name = code(unit.name()?);
    let cost = unit.cost.as_ref().map(|cost| match cost {
        Amount::Literal(cost) => format!("Each call uses {cost} of {name}."),
        Amount::Expression(cost) => format!("A call uses {} of {name}.", expression(cost)),
    });
    let settle = unit.settle.as_ref().map(|settle| match settle {
        UnitSettlement::Function(settle) => {
            format!("When it has ended, it counts as the {name} that it has used: {}.", expression(settle))
        }
        UnitSettlement::Metered(_) => format!("When it has ended, it counts as the {name} that it has metered."),
    });
    let sentences: Vec<_> = cost.into_iter().chain(settle).collect();
    Some(sentences.join(" "))
}

fn item(model: &RuleModel, position: usize, rules: &[Rule], reader: Reader) -> String {
    let rule = &model.rule;
    let limited = match (reader, rule.role(), rule.per()) {
        (Reader::Client, ..) => limit_in_words(rule),
        (Reader::Developer, Role::Duplicate, Some(per)) => {
            format!("no duplicate within {}", code(&format_duration(per)))
        }
        (Reader::Developer, ..) if rule.is_shadow() => format!("tried out and not enforced: {}", limit(rule)),
        (Reader::Developer, ..) => format!("at most {}", limit(rule)),
    };
    let count = model.count.as_ref().map(|count| match reader {
        Reader::Developer => format!(", where {} is {}", code("n"), expression(count)),
        Reader::Client => format!(", where {} depends on the caller", code("n")),
    });
    let stricter = implied_by(rules, position).filter(|_| reader == Reader::Developer);
    let stricter = stricter.and_then(|stricter| rules.get(stricter));
    let implied = stricter.map(|stricter| format!(", which {} already implies", limit(stricter)));
    let name = rule.name().map(|name| format!(" ({})", code(name)));
    [Some(limited), count, implied, name].into_iter().flatten().collect()
}

/// Returns a limit without the rule's name, as a span of code if that is clear.
fn limit(rule: &Rule) -> String {
    if rule.role() == Role::Concurrency {
        let calls = if rule.count() == 1 && !rule.is_varying() { "call" } else { "calls" };
        let limit = if rule.is_varying() { code("n") } else { rule.count().to_string() };
        return format!("{limit} concurrent {calls}");
    }
    code(&format!("{rule:#}"))
}

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
