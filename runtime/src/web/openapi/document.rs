//! The responses to rejected requests in a whole document.

use std::collections::btree_map::Entry;
use std::mem;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Response as Answer, StatusCode};
use tallygate_rules::Rule;
use utoipa::PartialSchema as _;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, RefOr, Response};

use super::Responses;
use crate::decision::{DecidedBy, Denial, Rejection, Wait};
use crate::error::BackendError;
use crate::policy::{Policy, PolicySettings};
use crate::web::problem::{PROBLEM_JSON, Problem};

/// Calls a function with the path, the method and the responses of each operation.
pub(in crate::web) fn for_each_operation(document: &mut OpenApi, mut each: impl FnMut(&str, &str, &mut Responses)) {
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            each(path, method, &mut operation.responses.responses);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, put, post, delete, options, head, patch, trace, .. } = item;
    let named = [
        ("GET", get),
        ("PUT", put),
        ("POST", post),
        ("DELETE", delete),
        ("OPTIONS", options),
        ("HEAD", head),
        ("PATCH", patch),
        ("TRACE", trace),
    ];
    named.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Describes the problems among these responses as such rejections are really answered.
pub(in crate::web) fn answer_problems(responses: &mut Responses, answer: impl Fn(&Rejection) -> Answer<String>) {
    let problem = RefOr::T(ContentBuilder::new().schema(Some(Problem::schema())).build());
    let is_problem = |response: &RefOr<Response>| match response {
        RefOr::T(response) => response.content.get(PROBLEM_JSON) == Some(&problem),
        RefOr::Ref(_) => false,
    };
    // All are taken out before one is added, because an answer may have the status of another problem.
    let (problems, others) = mem::take(responses).into_iter().partition(|(_, response)| is_problem(response));
    *responses = others;
    for (status, response) in Responses::into_iter(problems) {
        match (rejection_with(&status), response) {
            (Some(rejection), RefOr::T(response)) => {
                let answer = answer(&rejection);
                add(responses, answer.status().as_str().to_owned(), answered(response, &answer).into());
            }
            (_, response) => add(responses, status, response),
        }
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
    let policy = Policy::of_checked(String::new(), vec![(None, rule)], PolicySettings::default());
    Some(Denial::new(&policy, Some(0), Wait::of(MINUTE), 1, DecidedBy::Backend).into())
}

fn answered(mut response: Response, answer: &Answer<String>) -> Response {
    let media_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type != Some(PROBLEM_JSON) {
        response.content.clear();
        let content = media_type.map(|media_type| (media_type.to_owned(), ContentBuilder::new().build().into()));
        response.content.extend(content);
    }
    // The layer adds the field to these.
    let is_added = matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT);
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
    for (media_type, content) in added.content {
        known.content.entry(media_type).or_insert(content);
    }
    for (name, header) in added.headers {
        known.headers.entry(name).or_insert(header);
    }
}
