//! The fields of responses that show where limits stand, in a document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tallygate_rules::CALLS;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Response};

use crate::web::fields::{Draft, Fields};

/// Marks a response with the units of its limits, until a layer describes its fields. Without it, the limits count calls.
const UNITS: &str = "x-ratelimit-units";

/// The field by which the response to a denied request is known.
const POLICY_FIELD: &str = "RateLimit-Policy";

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
        for field in Fields::from(DEFAULT).described("", &calls()) {
            response.headers.remove(&field.name);
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

fn describe(response: &mut Response, fields: Fields, limits: &str, units: &BTreeSet<String>) {
    for field in fields.described(limits, units) {
        let kind = if field.is_number { Type::Integer } else { Type::String };
        response.headers.insert(field.name, header(&field.text, kind).into());
    }
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
