//! The routes in documents of OpenAPI, for users of utoipa.

mod schemas;

use serde_json::{Map, Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::OpenApi;

use super::AdminRoutes;
use crate::web::problem::{PROBLEM_JSON, Problem};

/// The schema of the problem of an outage, which rejections share.
const UNAVAILABLE: &str = "LimitUnavailable";

/// The responses to requests that are not carried out.
const FAILURES: [(u16, &str, &str, &str); 5] = [
    (400, "LimitRequestMalformed", "The path, the query or the body cannot be read.", schemas::MISTAKE),
    (404, "LimitNotFound", "There is no such policy, or it has no such label.", schemas::MISTAKE),
    (413, "LimitRequestTooLong", "The body is longer than 16 KiB.", schemas::MISTAKE),
    (422, "LimitRequestRefused", "A value is missing, unknown or given twice, or cannot be used.", schemas::MISTAKE),
    (503, "LimitsUnavailable", "Redis does not answer, or refuses.", UNAVAILABLE),
];

/// What an operation takes.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Policy,
    Values,
    ValuesAndLabel,
    Page,
}

/// A method of a path.
struct Operation {
    path: &'static str,
    method: &'static str,
    id: &'static str,
    summary: &'static str,
    takes: Takes,
    /// The schema of its answer.
    answer: &'static str,
}

const fn operation(
    (path, method, id): (&'static str, &'static str, &'static str),
    summary: &'static str,
    takes: Takes,
    answer: &'static str,
) -> Operation {
    Operation { path, method, id, summary, takes, answer }
}

const POLICY: &str = "/policies/{name}";
const SUBJECT: &str = "/policies/{name}/subject";
const BAN: &str = "/policies/{name}/ban";
const OVERRIDE: &str = "/policies/{name}/override";
const ON_LABEL: &str = "/policies/{name}/override/{label}";

#[rustfmt::skip]
const OPERATIONS: [Operation; 15] = [
    operation(("/policies", "get", "listLimitPolicies"), "Lists the policies.", Takes::Nothing, "LimitPolicies"),
    operation((POLICY, "get", "getLimitPolicy"), "Shows a policy.", Takes::Policy, "LimitPolicy"),
    operation((SUBJECT, "get", "peekAtLimits"), "Shows where subjects stand, and counts nothing.", Takes::Values, "LimitState"),
    operation((SUBJECT, "delete", "resetLimit"), "Lets the main subject start again.", Takes::Values, "LimitReset"),
    operation(("/policies/{name}/subjects", "delete", "resetLimits"),
        "Lets all subjects of a call start again, which others may share.", Takes::Values, "LimitReset"),
    operation((BAN, "put", "banSubject"), "Bans the main subject.", Takes::Values, "LimitBanned"),
    operation((BAN, "delete", "unbanSubject"), "Ends the ban of the main subject.", Takes::Values, "LimitUnbanned"),
    operation(("/policies/{name}/bans", "get", "listBans"), "Lists who is banned, by pages.", Takes::Page, "LimitBans"),
    operation((OVERRIDE, "get", "getLimitOverride"),
        "Shows the override for the policy, or for a subject.", Takes::Values, "LimitOverrideFound"),
    operation((OVERRIDE, "put", "setLimitOverride"),
        "Lets other rules decide, for the policy or for a subject.", Takes::Values, "LimitOverrideSet"),
    operation((OVERRIDE, "delete", "clearLimitOverride"),
        "Clears the override for the policy, or for a subject.", Takes::Values, "LimitOverrideCleared"),
    operation((ON_LABEL, "get", "getLimitOverrideOnLabel"),
        "Shows the override of the rules on another subject.", Takes::ValuesAndLabel, "LimitOverrideFound"),
    operation((ON_LABEL, "put", "setLimitOverrideOnLabel"),
        "Lets other rules decide in place of those on another subject.", Takes::ValuesAndLabel, "LimitOverrideSet"),
    operation((ON_LABEL, "delete", "clearLimitOverrideOnLabel"),
        "Clears the override of the rules on another subject.", Takes::ValuesAndLabel, "LimitOverrideCleared"),
    operation(("/overrides", "get", "listLimitOverrides"), "Lists all overrides.", Takes::Nothing, "LimitOverrides"),
];

impl AdminRoutes {
    /// Returns the document of the routes, with paths as below the prefix, for `OpenApi::nest`. The service adds what it
    /// requires of operators: the routes require nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::web::AdminRoutes;
    /// use utoipa::openapi::OpenApi;
    ///
    /// let document = OpenApi::default().nest("/admin/limits", AdminRoutes::openapi());
    /// assert!(document.paths.paths.contains_key("/admin/limits/policies/{name}/subject"));
    /// ```
    #[must_use]
    pub fn openapi() -> OpenApi {
        let mut paths = Map::new();
        for operation in &OPERATIONS {
            paths.entry(operation.path).or_insert_with(|| json!({}))[operation.method] = operation.describe();
        }
        let mut schemas = schemas::all();
        schemas.insert(UNAVAILABLE.to_owned(), json!(Problem::schema()));
        let responses: Map<_, _> = FAILURES
            .iter()
            .map(|(_, name, description, schema)| ((*name).to_owned(), response(description, PROBLEM_JSON, schema)))
            .collect();
        let document = json!({
            "openapi": "3.1.0",
            "info": { "title": "Limits", "version": env!("CARGO_PKG_VERSION") },
            "paths": paths,
            "components": { "schemas": schemas, "responses": responses },
        });
        // The JSON is a document of OpenAPI in every version of the crate.
        serde_json::from_value(document).unwrap_or_default()
    }
}

impl Operation {
    fn describe(&self) -> Value {
        let mut operation = json!({
            "operationId": self.id,
            "tags": ["limits"],
            "summary": self.summary,
            "parameters": self.parameters(),
            "responses": self.responses(),
        });
        if self.method == "put" {
            let (schema, is_required) =
                if self.path == BAN { ("LimitBanBody", false) } else { ("LimitRulesBody", true) };
            operation["requestBody"] =
                json!({ "content": content("application/json", schema), "required": is_required });
        }
        operation
    }

    fn parameters(&self) -> Vec<Value> {
        let parameter = |name: &str, place: &str, description: &str| {
            let is_in_path = place == "path";
            let schema = json!({ "type": "string" });
            json!({ "name": name, "in": place, "required": is_in_path, "description": description, "schema": schema })
        };
        let name = || parameter("name", "path", "The name of the policy; a `/` within it is written `%2F`.");
        let label = || parameter("label", "path", "The label of another subject of the policy.");
        let page = || parameter("from", "query", "The `next` of the page before.");
        let values = || {
            let mut values = parameter(
                "values",
                "query",
                "The values that the keys of the policy show, by their names, like `phone=13800000000`.",
            );
            values["schema"] = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            (values["style"], values["explode"]) = (json!("form"), json!(true));
            values
        };
        match self.takes {
            Takes::Nothing => Vec::new(),
            Takes::Policy => vec![name()],
            Takes::Values => vec![name(), values()],
            Takes::ValuesAndLabel => vec![name(), label(), values()],
            Takes::Page => vec![name(), page()],
        }
    }

    fn responses(&self) -> Map<String, Value> {
        let may_be = |status: u16| match status {
            404 => self.takes != Takes::Nothing,
            413 => self.method == "put",
            _ => true,
        };
        let failures = FAILURES.iter().filter(|(status, ..)| may_be(*status)).map(|(status, name, ..)| {
            (status.to_string(), json!({ "$ref": format!("#/components/responses/{name}") }))
        });
        let done = response("What was asked.", "application/json", self.answer);
        [("200".to_owned(), done)].into_iter().chain(failures).collect()
    }
}

fn response(description: &str, media_type: &str, schema: &str) -> Value {
    json!({ "description": description, "content": content(media_type, schema) })
}

fn content(media_type: &str, schema: &str) -> Value {
    json!({ media_type: { "schema": schemas::reference(schema) } })
}
