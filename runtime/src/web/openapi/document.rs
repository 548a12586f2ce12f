//! The responses to rejected requests in a whole document.

use std::collections::btree_map::Entry;
use std::mem;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Response as Answer, StatusCode};
use tallygate_rules::Rule;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::Responses;
use super::limit_fields::add_units;
use crate::call::{Call, CallOptions};
use crate::decision::{DecidedBy, Denial, DenialCause, Rejection, Wait};
use crate::error::BackendError;
use crate::policy::{Policy, PolicySettings};
use crate::web::problem::{PROBLEM_JSON, Problem};

/// Calls a function with the path, the method and the responses of each operation. A response of the components stands in
/// place of the reference to it. It stays there if the function changes it, as other operations refer to it, too.
pub(in crate::web) fn for_each_operation(document: &mut OpenApi, mut each: impl FnMut(&str, &str, &mut Responses)) {
    let components = document.components.as_ref().map(|components| components.responses.clone()).unwrap_or_default();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            let responses = &mut operation.responses.responses;
            let referred = resolve(responses, &components);
            each(path, method, responses);
            for (status, reference, response) in referred {
                if responses.get(&status) == Some(&response) {
                    responses.insert(status, reference);
                }
            }
        }
    }
}

/// Puts responses of the components in place of the references to them. Returns the status and both of each.
fn resolve(responses: &mut Responses, components: &Responses) -> Vec<(String, RefOr<Response>, RefOr<Response>)> {
    let found = responses.iter_mut().filter_map(|(status, response)| {
        let RefOr::Ref(Ref { ref_location, description, .. }) = &*response else { return None };
        let mut found = component(ref_location, components)?.clone();
        if !description.is_empty() {
            found.description.clone_from(description);
        }
        let found = RefOr::T(found);
        Some((status.clone(), mem::replace(response, found.clone()), found))
    });
    found.collect()
}

/// Returns a response of the components; `None` if it is in another document, or refers to another one.
fn component<'a>(location: &str, components: &'a Responses) -> Option<&'a Response> {
    match components.get(location.strip_prefix("#/components/responses/")?)? {
        RefOr::T(response) => Some(response),
        RefOr::Ref(_) => None,
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&str, &mut Operation)> {
    let PathItem { get, put, post, delete, options, head, patch, trace, query, additional_operations, .. } = item;
    let named = [
        ("GET", get),
        ("PUT", put),
        ("POST", post),
        ("DELETE", delete),
        ("OPTIONS", options),
        ("HEAD", head),
        ("PATCH", patch),
        ("TRACE", trace),
        ("QUERY", query),
    ];
    let named = named.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)));
    named.chain(additional_operations.iter_mut().map(|(method, operation)| (&**method, operation)))
}

/// Describes the problems among these responses as such rejections are really answered.
pub(in crate::web) fn answer_problems(responses: &mut Responses, answer: impl Fn(&Rejection) -> Answer<String>) {
    let of_problem = |schema| Some(RefOr::T(ContentBuilder::new().schema(Some(schema)).build()));
    let problems = [of_problem(Problem::schema()), of_problem(Ref::from_schema_name(Problem::name()).into())];
    let mut answers = Vec::new();
    // All are taken out before one is added, because an answer may have the status of another problem.
    responses.retain(|status, response| {
        let (RefOr::T(response), Some(rejection)) = (response, rejection_with(status)) else { return true };
        if !problems.contains(&response.content.get(PROBLEM_JSON).cloned()) {
            return true;
        }
        let answer = answer(&rejection);
        answers.push((answer.status().as_str().to_owned(), answered(response.clone(), &answer)));
        // What else is said of this status is of other responses.
        response.content.retain(|media_type, _| media_type != PROBLEM_JSON);
        !response.content.is_empty()
    });
    for (status, response) in answers {
        add(responses, status, response.into());
    }
}

/// Returns a rejection whose problem has this status.
fn rejection_with(status: &str) -> Option<Rejection> {
    const MINUTE: Duration = Duration::from_secs(60);
    let rule = match status {
        "429" => Rule::sliding_window(1, MINUTE),
        "409" => Rule::duplicate(MINUTE),
        "503" => return Some(Rejection::unavailable("", BackendError::new("redis: no answer within the deadline"))),
        _ => return None,
    };
    let policy = Policy::of_checked(String::new(), vec![(None, rule)], PolicySettings::NONE);
    Some(
        Denial::new(
            Call::new(&policy, &[], CallOptions::PLAIN),
            DenialCause::rule(0),
            Wait::of(MINUTE),
            DecidedBy::Backend,
        )
        .into(),
    )
}

fn answered(mut response: Response, answer: &Answer<String>) -> Response {
    let media_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.content.retain(|known, _| known == PROBLEM_JSON && media_type == Some(PROBLEM_JSON));
    if response.content.is_empty() {
        let content = media_type.map(|media_type| (media_type.to_owned(), ContentBuilder::new().build().into()));
        response.content.extend(content);
    }
    // The layer adds the field to these.
    let denials = [StatusCode::TOO_MANY_REQUESTS, StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE];
    let is_added = denials.contains(&answer.status());
    if !is_added && !answer.headers().contains_key(RETRY_AFTER) {
        response.headers.remove("Retry-After");
    }
    response
}

/// Adds a response, to what is said of another one with this status.
pub(in crate::web) fn add(responses: &mut Responses, status: String, added: RefOr<Response>) {
    let mut entry = match responses.entry(status) {
        Entry::Vacant(vacant) => {
            vacant.insert(added);
            return;
        }
        Entry::Occupied(occupied) => occupied,
    };
    let (RefOr::T(known), RefOr::T(added)) = (entry.get_mut(), added) else { return };
    let said: Vec<_> = known.description.split("\n\n").collect();
    let new = added.description.split("\n\n").filter(|paragraph| !said.contains(paragraph));
    known.description = said.iter().copied().chain(new).collect::<Vec<_>>().join("\n\n");
    add_units(known, &added);
    for (media_type, content) in added.content {
        known.content.entry(media_type).or_insert(content);
    }
    for (name, header) in added.headers {
        known.headers.entry(name).or_insert(header);
    }
}

#[cfg(test)]
mod tests {
    use utoipa::openapi::ResponseBuilder;

    use super::*;

    #[test]
    fn what_others_answer_with_the_status_of_a_problem_stays_in_the_document() {
        let problem = ContentBuilder::new().schema(Some(Problem::schema())).build();
        let page = ContentBuilder::new().build();
        let limited = ResponseBuilder::new().description("limited").content(PROBLEM_JSON, problem);
        let limited = limited.content("text/html", page).build();
        let mut responses = Responses::from([("429".to_owned(), RefOr::T(limited))]);
        answer_problems(&mut responses, |_| {
            Answer::builder().status(420).header(CONTENT_TYPE, "application/json").body(String::new()).unwrap()
        });
        let media_types = |status: &str| match &responses[status] {
            RefOr::T(response) => response.content.keys().cloned().collect::<Vec<_>>(),
            RefOr::Ref(_) => Vec::new(),
        };
        assert_eq!(
            (media_types("420"), media_types("429")),
            (vec!["application/json".into()], vec!["text/html".into()])
        );
    }
}
