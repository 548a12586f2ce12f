//! A policy of the file for requests of a web server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{
    Ban, CALLS, Costs, CountedSubject, Field, RuleError, TemplateUse, missing_argument, validate_ban,
    validate_longest_pause, validate_prefetch,
};

use super::lines::{At, Lines};
use super::plans::ListedPlans;
use super::request_effects::RequestEffects;
use super::rules::{FileRule, PolicyParts, RuleList, are_known, check_rules, known_rules};
use super::table::Table;
use crate::context::{ContextKey, ContextMessage};
use crate::decision::{Rejection, RejectionKind};
use crate::error::Place;
use crate::policy::{Policy, PolicyBuilder, PolicySettings};
use crate::request_pattern::{
    PathPattern, PathReading, RequestMethod, RequestPath, check_method, method_includes, surely_contain,
};
use crate::subject::filters::Secret;

const MATCH: &str = r#"match = { path = "/login", methods = ["POST"] }"#;
const KEY: &str = r#"key = "{@ip}""#;

#[derive(Debug)]
pub(crate) struct RequestLimit {
    pub(crate) policy: Policy,
    pub(crate) key: ContextKey,
    /// The other subjects of the policy, by their labels.
    pub(crate) subjects: Vec<(String, ContextKey)>,
    pub(crate) is_shadow: bool,
    pub(crate) effects: RequestEffects,
    pub(crate) messages: Option<Arc<FileMessages>>,
    /// The values of the context that its keys, its messages and its plan show, and where they stand.
    pub(crate) shown: Vec<At<String>>,
    pub(super) requests: Requests,
}

#[derive(Debug)]
pub(super) struct Requests {
    /// The paths that it limits; all paths if it is empty.
    pub(super) paths: Vec<PathPattern>,
    /// `None` for all methods.
    pub(super) methods: Option<Vec<String>>,
    pub(super) place: Place,
}

impl RequestLimit {
    /// Whether it limits requests of that method, with that reading of their path.
    pub(crate) fn is_for(&self, method: RequestMethod<'_>, path: PathReading<'_>) -> bool {
        let Requests { paths, methods, .. } = &self.requests;
        let is_of_paths = || paths.is_empty() || paths.iter().any(|pattern| pattern.contains(path));
        method.is_limited(methods.as_deref()) && is_of_paths()
    }

    pub(crate) fn exempts(&self, path: &RequestPath<'_>) -> bool {
        surely_contain(&self.effects.exempt_paths, path)
    }
}

impl Requests {
    /// Whether they include all `others`.
    pub(super) fn cover(&self, others: &Self) -> bool {
        let cover_methods = match (&self.methods, &others.methods) {
            (None, None) => true,
            // A limit that lists `OPTIONS` also counts preflights.
            (None, Some(others)) => others.iter().all(|method| method != "OPTIONS"),
            (Some(_), None) => false,
            (Some(own), Some(others)) => {
                let is_covered = |other: &String| own.iter().any(|own| method_includes(own, other));
                others.iter().all(is_covered)
            }
        };
        let is_covered = |other: &PathPattern| self.paths.iter().any(|own| own.covers(other));
        cover_methods && (self.paths.is_empty() || !others.paths.is_empty() && others.paths.iter().all(is_covered))
    }
}

/// The messages of a policy for requests. The message of a rule goes before that of the policy.
#[derive(Debug)]
pub(crate) struct FileMessages {
    policy: Option<ContextMessage>,
    /// One for each rule, in their order.
    rules: Vec<Option<ContextMessage>>,
    ban: Option<ContextMessage>,
}

impl FileMessages {
    /// Returns the messages, or `None` if there is none.
    pub(super) fn new(
        policy: Option<ContextMessage>,
        rules: impl Iterator<Item = Option<ContextMessage>>,
        ban: Option<ContextMessage>,
    ) -> Option<Self> {
        let rules: Vec<_> = rules.collect();
        let is_any = policy.is_some() || ban.is_some() || rules.iter().any(Option::is_some);
        is_any.then_some(Self { policy, rules, ban })
    }

    /// Returns the names of the values of the context that they show.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().chain([&self.policy, &self.ban]).flatten().flat_map(ContextMessage::names)
    }

    /// Returns the text for a rejection in the current context; `None` is the usual one.
    pub(crate) fn text(&self, rejection: &Rejection, secret: &Secret) -> Option<String> {
        let message = match rejection.denying_rule() {
            Some(position) => self.rules.get(position).and_then(Option::as_ref).or(self.policy.as_ref()),
            None => self.ban.as_ref().filter(|_| rejection.kind() == RejectionKind::Banned),
        };
        message.map(|message| message.text(rejection, secret))
    }
}

/// Reads a policy for requests; `None` if it is mistaken.
pub(super) fn read(
    parts: PolicyParts<'_>,
    mut table: Table<'_>,
    plans: &Arc<ListedPlans>,
    lines: &mut Lines<'_>,
) -> Option<RequestLimit> {
    let before = lines.mistakes();
    let PolicyParts { name, rules, key, settings } = parts;
    let has_key = key.is_some();
    let requests = table.table("match", MATCH, lines).and_then(|table| requests(table, lines));
    let ban = table.table("ban", r#"ban = { denials = 20, within = "10m", duration = "1h" }"#, lines);
    let (ban, ban_message) = ban.map(|table| ban_of(table, rules.as_ref(), lines)).unwrap_or_default();
    let message = table.message(TemplateUse::Message, lines);
    let is_shadow = table.flag("shadow", lines).is_some_and(|shadow| shadow.value);
    let paths = requests.as_ref().map(|requests| &*requests.paths);
    let prefetch = table.duration("prefetch", r#"prefetch = "100ms""#, lines);
    let ahead = prefetch.as_ref().map(|prefetch| prefetch.value);
    let longest_pause = table.duration("longest_pause", r#"longest_pause = "1h""#, lines);
    let mut effects = RequestEffects::take(&mut table, paths, rules.as_ref(), ahead, plans, lines);
    if !has_key {
        lines.report(name.place, missing_argument("key", KEY));
    }
    table.finish_policy(name.value, lines);
    let (main, main_place) = (key.as_ref().map(|key| key.value), key.as_ref().map_or(name.place, |key| key.place));
    let template = key.as_ref().and_then(|key| template(key.value, key.place, lines));
    let subjects = rules.as_ref().map(|rules| subjects(rules, main, lines)).unwrap_or_default();
    if let Some(rules) = &rules {
        let cost = effects.cost_of(CALLS).unwrap_or(1).max(1);
        check_units(rules, &effects, lines);
        check_rules(rules, |rule| subject(rule, main), Costs::Always(cost), lines);
        check_prefetch(prefetch.as_ref(), rules, main, &effects, lines);
        check_longest_pause(longest_pause.as_ref(), rules, main, prefetch.is_some(), lines);
        check_key_used(rules, key.as_ref(), ban.is_some(), lines);
    }
    let rules = rules.filter(are_known);
    let (Some(requests), Some(rules), Some(key), true) = (requests, rules, template, lines.mistakes() == before) else {
        return None;
    };
    let shown_messages =
        rules.value.iter().filter_map(|rule| rule.message.as_ref()).chain(&message).chain(&ban_message);
    let shown =
        shown(&key, main_place, &subjects, &rules).chain(shown_messages.flat_map(shown_by)).chain(effects.plan_value());
    let shown = shown.collect();
    let messages = FileMessages::new(
        value(message),
        rules.value.iter().map(|rule| value(rule.message.clone())),
        value(ban_message),
    )
    .map(Arc::new);
    let builder = rules.value.into_iter().fold(Policy::builder(name.value.to_owned()), |builder, rule| {
        builder.rule_of(rule.label(main).map(str::to_owned), rule.rule)
    });
    let builder = ban.into_iter().fold(builder, PolicyBuilder::ban);
    let builder = main.into_iter().fold(builder, |builder, main| builder.key(main.to_owned()));
    // The label of another subject is its key.
    let builder = subjects.iter().fold(builder, |builder, (label, _)| builder.key_on(label.clone(), label.clone()));
    let settings = PolicySettings { prefetch: ahead, longest_pause: value(longest_pause), ..settings };
    let policy = builder.with_settings(settings).build();
    let policy = effects.plan(lines.ok_or_report(name.place, policy)?);
    Some(RequestLimit { policy, key, subjects, is_shadow, effects, messages, shown, requests })
}

/// Returns the values of the context that the keys show, each at the place of its key.
fn shown<'k>(
    key: &'k ContextKey,
    place: Place,
    subjects: &'k [(String, ContextKey)],
    rules: &'k RuleList,
) -> impl Iterator<Item = At<String>> + 'k {
    let place_of = move |label: &str| {
        let written = rules.value.iter().filter_map(|rule| rule.key.as_ref()).find(|key| key.value == label);
        written.map_or(place, |key| key.place)
    };
    let others = subjects.iter().map(move |(label, key)| (key, place_of(label)));
    let keys = std::iter::once((key, place)).chain(others);
    keys.flat_map(|(key, place)| key.names().map(move |name| At { value: name.to_owned(), place }))
}

/// Returns the values of the context that a message shows, each at the place of the message.
fn shown_by(message: &At<ContextMessage>) -> impl Iterator<Item = At<String>> {
    message.value.names().map(|name| At { value: name.to_owned(), place: message.place })
}

fn value<T>(read: Option<At<T>>) -> Option<T> {
    read.map(|read| read.value)
}

fn check_prefetch(
    prefetch: Option<&At<Duration>>,
    rules: &RuleList,
    main: Option<&str>,
    effects: &RequestEffects,
    lines: &mut Lines<'_>,
) {
    let Some(At { value, place }) = prefetch else { return };
    // What could not be read is not known.
    let known = rules.value.iter().filter(|rule| rule.is_complete);
    let rules: Vec<_> = known.map(|rule| (subject(rule, main), rule.rule.clone())).collect();
    let cost_of = |unit: &str| effects.cost_of(unit).unwrap_or(1);
    for mistake in validate_prefetch(*value, &rules, cost_of).err().into_iter().flatten() {
        lines.report(*place, mistake.to_string());
    }
}

/// Checks the longest pause of the main subject.
fn check_longest_pause(
    longest: Option<&At<Duration>>,
    rules: &RuleList,
    main: Option<&str>,
    is_prefetched: bool,
    lines: &mut Lines<'_>,
) {
    let Some(At { value, place }) = longest else { return };
    let known = rules.value.iter().filter(|_| are_known(rules));
    let known = known.map(|rule| (rule.label(main).is_none(), &rule.rule));
    lines.ok_or_report(*place, validate_longest_pause(*value, known, is_prefetched));
}

/// Reports rules that would limit nothing, because no request uses anything of their unit.
fn check_units(rules: &RuleList, effects: &RequestEffects, lines: &mut Lines<'_>) {
    for rule in &rules.value {
        if let Some(unit) = rule.rule.unit().filter(|unit| effects.cost_of(unit).is_none()) {
            let message = format!(
                "requests cost nothing in `{unit}`, so this rule limits nothing; write `cost = {{ {unit} = 500 }}`, count \
                 calls, or limit a function with `unit({unit:?}, cost = …)`"
            );
            lines.report(rule.place_of(Field::Unit), message);
        }
    }
}

fn template(text: &str, place: Place, lines: &mut Lines<'_>) -> Option<ContextKey> {
    lines.ok_or_report(place, ContextKey::parse(text))
}

/// Returns the subject that a rule counts in a policy with that key.
fn subject<'a>(rule: &'a FileRule, main: Option<&'a str>) -> CountedSubject<'a> {
    let label = rule.label(main);
    match label.or(main) {
        Some(key) => CountedSubject::with_key(label, key),
        None => CountedSubject::labelled(label),
    }
}

/// Returns the subjects beside the main one, by their labels.
fn subjects(rules: &RuleList, main: Option<&str>, lines: &mut Lines<'_>) -> Vec<(String, ContextKey)> {
    let mut seen = BTreeSet::new();
    let others = rules.value.iter().filter(|rule| rule.label(main).is_some()).filter_map(|rule| rule.key.as_ref());
    others
        .filter(|key| seen.insert(&key.value))
        .filter_map(|key| Some((key.value.clone(), template(&key.value, key.place, lines)?)))
        .collect()
}

/// Reports a key that no rule uses.
fn check_key_used(rules: &RuleList, key: Option<&At<&str>>, has_ban: bool, lines: &mut Lines<'_>) {
    let Some(key) = key.filter(|_| !has_ban && !rules.value.is_empty()) else { return };
    if rules.value.iter().all(|rule| rule.label(Some(key.value)).is_some()) {
        let message = "no rule uses this `key`, because each has a `key` of its own; remove one of theirs";
        lines.report(key.place, message);
    }
}

/// Returns the ban, and its message.
fn ban_of(
    mut table: Table<'_>,
    rules: Option<&RuleList>,
    lines: &mut Lines<'_>,
) -> (Option<Ban>, Option<At<ContextMessage>>) {
    let [denials, within, duration] = ["denials = 20", r#"within = "10m""#, r#"duration = "1h""#];
    for (name, example) in [("denials", denials), ("within", within), ("duration", duration)] {
        table.require(name, example);
    }
    let place = table.place;
    let denials = table.number("denials", denials, lines);
    let within = table.duration("within", within, lines);
    let duration = table.duration("duration", duration, lines);
    let message = table.message(TemplateUse::BanMessage, lines);
    table.finish(lines);
    let (Some(denials), Some(within), Some(duration)) = (denials, within, duration) else { return (None, message) };
    let ban = Ban::new(denials.value, within.value, duration.value);
    let place_of = |mistake: &RuleError| match mistake.field() {
        Field::Denials => denials.place,
        Field::Within => within.place,
        Field::Duration => duration.place,
        _ => place,
    };
    for mistake in validate_ban(&ban, known_rules(rules)).err().into_iter().flatten() {
        lines.report(place_of(&mistake), mistake.to_string());
    }
    (Some(ban), message)
}

fn requests(mut table: Table<'_>, lines: &mut Lines<'_>) -> Option<Requests> {
    let before = lines.mistakes();
    let place = table.place;
    if !table.has("path") && !table.has("methods") {
        table.require("path", r#"path = "/*""#);
    }
    let paths = table.texts("path", r#"path = "/login""#, lines);
    let methods = table.texts("methods", r#"methods = ["POST"]"#, lines);
    table.finish(lines);
    let patterns = paths.iter().flatten();
    let patterns = patterns.filter_map(|path| lines.ok_or_report(path.place, PathPattern::parse(path.value))).collect();
    for method in methods.iter().flatten() {
        lines.ok_or_report(method.place, check_method(method.value));
    }
    let owned = |texts: &Vec<At<&str>>| texts.iter().map(|text| text.value.to_owned()).collect::<Vec<_>>();
    (lines.mistakes() == before).then(|| Requests { paths: patterns, methods: methods.as_ref().map(owned), place })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Policies;

    fn requests(paths: &[&str], methods: Option<&[&str]>) -> Requests {
        Requests {
            paths: paths.iter().map(|path| PathPattern::parse(path).unwrap()).collect(),
            methods: methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect()),
            place: Place { line: 1, column: 1 },
        }
    }

    #[test]
    fn requests_cover_others_of_no_more_paths_and_methods() {
        let all = requests(&[], None);
        let api = requests(&["/api/*"], None);
        let login = requests(&["/api/login", "/api/signup"], Some(&["POST"]));
        assert!(all.cover(&api) && all.cover(&login) && api.cover(&login) && login.cover(&login));
        assert!(!api.cover(&all) && !login.cover(&api) && !login.cover(&all));
        assert!(!all.cover(&requests(&["/api/login"], Some(&["OPTIONS"]))));
        let (get, head) = (requests(&[], Some(&["GET"])), requests(&[], Some(&["HEAD"])));
        assert!(get.cover(&head) && !head.cover(&get));
        assert!(!api.cover(&requests(&["/api/login", "/"], None)));
    }

    #[test]
    fn a_policy_for_requests_knows_how_its_subjects_are_written() {
        let text = "[policy.login]\nmatch = { path = '/login' }\nkey = '{@ip}'\n\
                    rules = ['1 per 1m', { count = 9, per = '1h', key = 'all' }]";
        let policies = Policies::from_toml(text).unwrap();
        let policy = &policies.requests().as_slice()[0].policy;
        assert_eq!((policy.key(), policy.templates().get(Some("all"))), (Some("{@ip}"), Some("all")));
    }
}
