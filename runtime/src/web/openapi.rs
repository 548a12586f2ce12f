//! Responses of limited handlers in OpenAPI documents, for users of utoipa.

pub(super) mod document;
pub(super) mod limit_fields;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use tallygate_rules::{Ban, CALLS, EffectiveRule, Role, Rule, counted_in_words, format_duration, limit_in_words};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Header, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use self::limit_fields::{header, of_denial};
use super::problem::{PROBLEM_JSON, Problem};
use crate::decision::Rejection;
use crate::policy::Policy;

/// Responses by their status.
pub type Responses = BTreeMap<String, RefOr<Response>>;

/// Returns the responses to requests that a policy rejects: 429 if it has limits, 409 if it prevents duplicates, and
/// 503. The description of the first one has the rules and the ban.
///
/// Use it for policies that are built by hand, and for [`limit`](super::limit). An annotated function has these
/// responses through `openapi = Name` in its attribute. For a rule on another subject, the description names the value
/// that its [key](crate::PolicyBuilder::key_on) shows, or else its label, in words, because clients do not know the
/// code.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate::{Policy, Rule, web};
/// use utoipa::IntoResponses;
///
/// struct ApiLimits;
///
/// impl IntoResponses for ApiLimits {
///     fn responses() -> std::collections::BTreeMap<String, utoipa::openapi::RefOr<utoipa::openapi::Response>> {
///         let policy = Policy::builder("api").rule(Rule::sliding_window(100, Duration::from_secs(60))).build();
///         policy.map(|policy| web::limit_responses(&policy)).unwrap_or_default()
///     }
/// }
/// assert_eq!(ApiLimits::responses().into_keys().collect::<Vec<_>>(), ["429", "503"]);
/// ```
#[must_use]
pub fn limit_responses(policy: &Policy) -> Responses {
    let item = |EffectiveRule { label, rule, .. }: EffectiveRule| match label {
        Some(label) => format!("* {} {}", limit_in_words(&rule), counted_together(policy, &label)),
        None => format!("* {}", limit_in_words(&rule)),
    };
    let items: Vec<_> = policy.effective_rules().into_iter().filter(|own| !own.rule.is_shadow()).map(item).collect();
    let ban = policy.ban().map(|ban| banned(policy, ban));
    let paragraphs: Vec<_> = [items.join("\n")].into_iter().chain(ban).collect();
    let rules = policy.rules().iter().filter(|rule| rule.role() == Role::Limit && !rule.is_shadow());
    responses(&paragraphs.join("\n\n"), &statuses_of(policy), rules.map(Rule::counted))
}

/// Returns in words which calls a rule on another subject counts together.
fn counted_together(policy: &Policy, label: &str) -> String {
    match policy.templates().get(Some(label)) {
        Some(key) => {
            counted_in_words(key).map_or("for all calls together".to_owned(), |counted| format!("for each {counted}"))
        }
        None => format!("for each {label}"),
    }
}

fn banned(policy: &Policy, ban: Ban) -> String {
    let banned = match policy.key().map(counted_in_words) {
        Some(Some(counted)) => format!("the {counted} is banned"),
        Some(None) => "all calls are banned".to_owned(),
        None => "the caller is banned".to_owned(),
    };
    let [within, duration] = [ban.within(), ban.duration()].map(format_duration);
    format!("After {} denials within `{within}`, {banned} for `{duration}`.", ban.denials())
}

fn statuses_of(policy: &Policy) -> Vec<u16> {
    let (duplicates, limits): (Vec<_>, Vec<_>) =
        policy.rules().iter().filter(|rule| !rule.is_shadow()).partition(|rule| rule.role() == Role::Duplicate);
    let limited = (!limits.is_empty() || policy.ban().is_some()).then_some(429);
    let paused = policy.longest_pause().map(|_| 503);
    limited.into_iter().chain((!duplicates.is_empty()).then_some(409)).chain(paused).collect()
}

/// Returns the responses to denied calls, by their statuses; 503 is for a paused one. The first description has the limits, in
/// words. `counted` are their units.
#[must_use]
pub fn responses<'u>(limits: &str, statuses: &[u16], counted: impl IntoIterator<Item = &'u str>) -> Responses {
    let units = counted.into_iter().map(str::to_owned).collect();
    let limits = Some(limits).filter(|limits| !limits.is_empty());
    let (paused, denied): (Vec<u16>, Vec<u16>) = statuses.iter().copied().partition(|status| *status == 503);
    let described = denied.into_iter().zip(iter::once(limits).chain(iter::repeat(None)));
    let denials = described.map(|(status, limits)| {
        let summary = match status {
            409 => "The same request was admitted a moment ago.",
            _ => "Too many requests.",
        };
        (status, denial([summary].into_iter().chain(limits).collect::<Vec<_>>().join("\n\n"), &units))
    });
    let unavailable = if paused.is_empty() {
        response("The limits cannot be checked right now.").build()
    } else {
        let paused = response("Calls are paused, or the limits cannot be checked right now.");
        paused.header("Retry-After", retry_after()).build()
    };
    denials.chain([(503, unavailable)]).map(|(status, response)| (status.to_string(), response.into())).collect()
}

/// Leaves out the media type and the schema, where the program itself makes the response.
#[must_use]
pub fn without_content(mut responses: Responses) -> Responses {
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
    responses
}

fn denial(description: String, units: &BTreeSet<String>) -> Response {
    let mut response = response(description).header("Retry-After", retry_after()).build();
    of_denial(&mut response, units);
    response
}

fn retry_after() -> Header {
    header("The seconds to wait, where waiting helps.", Type::Integer)
}

fn response(description: impl Into<String>) -> ResponseBuilder {
    let problem = ContentBuilder::new().schema(Some(Problem::schema())).build();
    ResponseBuilder::new().description(description).content(PROBLEM_JSON, problem)
}

/// All responses that a rejection becomes: 409, 429 and 503.
impl IntoResponses for Rejection {
    fn responses() -> Responses {
        responses("", &[429, 409, 503], [CALLS])
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        let text = |description: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(description));
        let number = |description: &str| ObjectBuilder::new().schema_type(Type::Integer).description(Some(description));
        let kinds = ["limited", "duplicate", "concurrency", "banned", "paused", "unavailable", "unidentified"];
        let policies = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
        let schema = ObjectBuilder::new()
            .property("type", text("The problem type."))
            .property("title", text("A sentence for the type."))
            .property("status", number("The status, again."))
            .property("detail", text("What to tell the user."))
            .property("kind", text("Why the request was rejected.").enum_values(Some(kinds)))
            .property("violated-policies", policies.description(Some("The limit that denied the request.")))
            .property("unit", text("The unit of that limit, if it does not count requests."))
            .property("retry_after_ms", number("The milliseconds to wait, where waiting helps."));
        let required = ["type", "title", "status", "detail", "kind", "violated-policies"];
        required.into_iter().fold(schema, ObjectBuilder::required).build().into()
    }
}

impl ToSchema for Problem {}
