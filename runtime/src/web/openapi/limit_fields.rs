//! The fields of responses that show where limits stand, in words, in a document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tallygate_rules::CALLS;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Response};

use crate::web::fields::{Draft, Fields, Legacy, unit_in_fields};

/// Marks a response with the units of its limits, until a layer describes its fields. Without it, the limits count calls.
const UNITS: &str = "x-ratelimit-units";

/// The field by which the response to a denied request is known.
const POLICY_FIELD: &str = "RateLimit-Policy";
const LIMIT_FIELD: &str = "RateLimit";

/// The fields of a layer that chooses no others.
const DEFAULT: Draft = Draft::V11;

/// Describes the fields of the response to a denied request whose limits count these units.
pub(super) fn of_denial(response: &mut Response, units: &BTreeSet<String>) {
    describe(response, Fields::from(DEFAULT), "The limits that denied the request", units);
    set_units(response, units);
}

/// Adds the units of another response to a denied request with the same status.
pub(super) fn add_units(known: &mut Response, added: &Response) {
    let units: BTreeSet<_> = units(known).into_iter().flatten().chain(units(added).into_iter().flatten()).collect();
    if is_denial(known) || is_denial(added) {
        set_units(known, &units);
    }
}

/// Describes the fields that a layer writes: into responses to denied requests, and into successful ones if it is asked to.
pub(in crate::web) fn answer_fields(
    responses: &mut BTreeMap<String, RefOr<Response>>,
    fields: Fields,
    on_success: bool,
) {
    let mut all_units = BTreeSet::new();
    let mut is_limited = false;
    for (_, response) in responses_of(responses).filter(|(_, response)| is_denial(response)) {
        let units = units(response).unwrap_or_default();
        for field in [POLICY_FIELD, LIMIT_FIELD] {
            response.headers.remove(field);
        }
        set_units(response, &calls());
        describe(response, fields, "The limits that denied the request", &units);
        all_units.extend(units);
        is_limited = true;
    }
    let successful = responses_of(responses).filter(|(status, _)| status.starts_with('2'));
    for (_, response) in successful.filter(|_| on_success && is_limited) {
        describe(response, fields, "The limits of the request", &all_units);
    }
}

fn responses_of(responses: &mut BTreeMap<String, RefOr<Response>>) -> impl Iterator<Item = (&str, &mut Response)> {
    responses.iter_mut().filter_map(|(status, response)| match response {
        RefOr::T(response) => Some((&**status, response)),
        RefOr::Ref(_) => None,
    })
}

/// Describes the fields of a response whose `limits` they show, in words, given what these limits count.
fn describe(response: &mut Response, fields: Fields, limits: &str, units: &BTreeSet<String>) {
    let draft = fields.draft.into_iter().flat_map(|_| draft(limits));
    let legacy = match fields.legacy {
        Some(Legacy::XRateLimit) => x_ratelimit().into(),
        Some(Legacy::XRateLimitByUnit) => units.iter().flat_map(|unit| x_ratelimit_of_unit(unit)).collect(),
        None => Vec::new(),
    };
    response.headers.extend(draft.chain(legacy).map(|(name, header)| (name, header.into())));
}

fn draft(limits: &str) -> [(String, Header); 2] {
    [
        (POLICY_FIELD.to_owned(), header(&format!("{limits}."), Type::String)),
        (LIMIT_FIELD.to_owned(), header("Where these limits stand.", Type::String)),
    ]
}

fn x_ratelimit() -> [(String, Header); 3] {
    let reset = "The seconds until all of it is left or, where nothing is, until one more request is admitted.";
    [
        ("X-RateLimit-Limit".to_owned(), header("The count of the tightest limit.", Type::Integer)),
        ("X-RateLimit-Remaining".to_owned(), header("What is left of it.", Type::Integer)),
        ("X-RateLimit-Reset".to_owned(), header(reset, Type::Integer)),
    ]
}

fn x_ratelimit_of_unit(unit: &str) -> [(String, Header); 3] {
    let unit = unit_in_fields(unit);
    let limit = format!("The count of the tightest limit on {}.", unit.replace('-', " "));
    let reset = "The time, like `6m0s`, until all of it is left; where nothing is left, until something is; and where it denied the \
                 request, until the request would be admitted.";
    [
        (format!("x-ratelimit-limit-{unit}"), header(&limit, Type::Integer)),
        (format!("x-ratelimit-remaining-{unit}"), header("What is left of it.", Type::Integer)),
        (format!("x-ratelimit-reset-{unit}"), header(reset, Type::String)),
    ]
}

pub(super) fn header(description: &str, kind: Type) -> Header {
    let schema = ObjectBuilder::new().schema_type(kind).build();
    HeaderBuilder::new().description(Some(description)).schema(Some(schema)).build()
}

fn is_denial(response: &Response) -> bool {
    response.headers.contains_key(POLICY_FIELD)
}

/// Returns what the limits of a response to a denied request count; `None` for any other response.
fn units(response: &Response) -> Option<BTreeSet<String>> {
    let listed = response.extensions.as_ref().and_then(|extensions| extensions.get(UNITS)?.as_array());
    let texts = |listed: &Vec<Value>| listed.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    is_denial(response).then(|| listed.map_or_else(calls, texts))
}

fn set_units(response: &mut Response, units: &BTreeSet<String>) {
    let mut extensions = response.extensions.take().unwrap_or_default();
    if *units == calls() {
        extensions.remove(UNITS);
    } else {
        extensions.insert(UNITS.to_owned(), units.iter().cloned().collect());
    }
    response.extensions = Some(extensions).filter(|extensions| !extensions.is_empty());
}

fn calls() -> BTreeSet<String> {
    BTreeSet::from([CALLS.to_owned()])
}
