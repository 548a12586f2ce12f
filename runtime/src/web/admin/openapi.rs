//! The routes in documents of OpenAPI, for users of utoipa.

mod schemas;

use utoipa::PartialSchema as _;
use utoipa::openapi::path::HttpMethod::{self, Delete, Get, Put};
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, Info, ObjectBuilder, OpenApi, OpenApiBuilder, Paths, Ref, Required,
    ResponseBuilder, ResponsesBuilder,
};

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

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Policy,
    Values,
    ValuesAndCounts,
    ValuesAndLabel,
    Page,
}

struct Operation {
    path: &'static str,
    method: HttpMethod,
    id: &'static str,
    summary: &'static str,
    takes: Takes,
    /// The schema of its answer.
    answer: &'static str,
}

const fn operation(
    (path, method, id): (&'static str, HttpMethod, &'static str),
    summary: &'static str,
    takes: Takes,
    answer: &'static str,
) -> Operation {
    Operation { path, method, id, summary, takes, answer }
}

const POLICY: &str = "/policies/{name}";
const SUBJECT: &str = "/policies/{name}/subject";
const BAN: &str = "/policies/{name}/ban";
const PAUSE: &str = "/policies/{name}/pause";
const OVERRIDE: &str = "/policies/{name}/override";
const ON_LABEL: &str = "/policies/{name}/override/{label}";

#[rustfmt::skip]
const OPERATIONS: [Operation; 17] = [
    operation(("/policies", Get, "listLimitPolicies"), "Lists the policies.", Takes::Nothing, "LimitPolicies"),
    operation((POLICY, Get, "getLimitPolicy"), "Shows a policy.", Takes::Policy, "LimitPolicy"),
    operation((SUBJECT, Get, "peekAtLimits"), "Shows where subjects stand, and counts nothing.", Takes::ValuesAndCounts, "LimitState"),
    operation((SUBJECT, Delete, "resetLimit"), "Lets the main subject start again.", Takes::Values, "LimitReset"),
    operation(("/policies/{name}/subjects", Delete, "resetLimits"),
        "Lets all subjects of a call start again, which others may share.", Takes::Values, "LimitReset"),
    operation((BAN, Put, "banSubject"), "Bans the main subject.", Takes::Values, "LimitBanned"),
    operation((BAN, Delete, "unbanSubject"), "Ends the ban of the main subject.", Takes::Values, "LimitUnbanned"),
    operation(("/policies/{name}/bans", Get, "listBans"), "Lists who is banned, by pages.", Takes::Page, "LimitBans"),
    operation((PAUSE, Put, "pauseSubject"), "Pauses the subject that the policy lets be paused.", Takes::Values, "LimitPaused"),
    operation((PAUSE, Delete, "resumeSubject"), "Ends the pause of that subject.", Takes::Values, "LimitResumed"),
    operation((OVERRIDE, Get, "getLimitOverride"),
        "Shows the override for the policy, or for a subject.", Takes::Values, "LimitOverrideFound"),
    operation((OVERRIDE, Put, "setLimitOverride"),
        "Lets other rules decide, for the policy or for a subject.", Takes::Values, "LimitOverrideSet"),
    operation((OVERRIDE, Delete, "clearLimitOverride"),
        "Clears the override for the policy, or for a subject.", Takes::Values, "LimitOverrideCleared"),
    operation((ON_LABEL, Get, "getLimitOverrideOnLabel"),
        "Shows the override of the rules on another subject.", Takes::ValuesAndLabel, "LimitOverrideFound"),
    operation((ON_LABEL, Put, "setLimitOverrideOnLabel"),
        "Lets other rules decide in place of those on another subject.", Takes::ValuesAndLabel, "LimitOverrideSet"),
    operation((ON_LABEL, Delete, "clearLimitOverrideOnLabel"),
        "Clears the override of the rules on another subject.", Takes::ValuesAndLabel, "LimitOverrideCleared"),
    operation(("/overrides", Get, "listLimitOverrides"), "Lists all overrides.", Takes::Nothing, "LimitOverrides"),
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
        let mut paths = Paths::new();
        for operation in OPERATIONS {
            paths.add_path_operation(operation.path, vec![operation.method.clone()], operation.describe());
        }
        let components = schemas::all().fold(ComponentsBuilder::new(), |all, (name, schema)| all.schema(name, schema));
        let components = FAILURES.iter().fold(components, |all, (_, name, description, schema)| {
            all.response(*name, response(description, PROBLEM_JSON, schema))
        });
        OpenApiBuilder::new()
            .info(Info::new("Limits", env!("CARGO_PKG_VERSION")))
            .paths(paths)
            .components(Some(components.schema(UNAVAILABLE, Problem::schema()).build()))
            .build()
    }
}

impl Operation {
    fn describe(&self) -> OperationBuilder {
        OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag("limits")
            .summary(Some(self.summary))
            .parameters(Some(self.parameters()))
            .request_body((self.method == Put).then(|| self.body()))
            .responses(self.responses())
    }

    fn body(&self) -> RequestBody {
        let (schema, required) = match self.path {
            BAN => ("LimitBanBody", Required::False),
            PAUSE => ("LimitPauseBody", Required::True),
            _ => ("LimitRulesBody", Required::True),
        };
        RequestBodyBuilder::new().content("application/json", content(schema)).required(Some(required)).build()
    }

    fn parameters(&self) -> Vec<Parameter> {
        let name = || in_path("name", "The name of the policy; a `/` within it is written `%2F`.");
        match self.takes {
            Takes::Nothing => Vec::new(),
            Takes::Policy => vec![name()],
            Takes::Values => vec![name(), values()],
            Takes::ValuesAndCounts => {
                vec![name(), plan(), plan_of_rule(), count(), count_of_rule(), cost(), cost_of_unit(), values()]
            }
            Takes::ValuesAndLabel => {
                vec![name(), in_path("label", "The label of another subject of the policy."), values()]
            }
            Takes::Page => vec![name(), page()],
        }
    }

    fn responses(&self) -> ResponsesBuilder {
        let may_be = |status: u16| match status {
            404 => self.takes != Takes::Nothing,
            413 => self.method == Put,
            _ => true,
        };
        let done = response("What was asked.", "application/json", self.answer);
        let failures = FAILURES.iter().filter(|(status, ..)| may_be(*status));
        failures.fold(ResponsesBuilder::new().response("200", done), |all, (status, name, ..)| {
            all.response(status.to_string(), Ref::from_response_name(*name))
        })
    }
}

fn in_path(name: &str, description: &str) -> Parameter {
    parameter(name, description, ParameterIn::Path).required(Required::True).schema(Some(text())).build()
}

fn page() -> Parameter {
    parameter("from", "The `next` of the page before.", ParameterIn::Query).schema(Some(text())).build()
}

fn plan() -> Parameter {
    let description = "The plan whose count decides, where each call gives the count of a rule.";
    parameter("plan", description, ParameterIn::Query).schema(Some(text())).build()
}

fn plan_of_rule() -> Parameter {
    let description = "The plans, where each call gives the counts of several rules: `plan:` and the name, the position or the unit of a rule, like `plan:tokens=pro`.";
    by_name("plan:", description, text())
}

fn count() -> Parameter {
    let description = "The count that decides, where each call gives that of a rule.";
    parameter("count", description, ParameterIn::Query).schema(Some(number())).build()
}

fn count_of_rule() -> Parameter {
    let description = "The counts, where each call gives those of several rules: `count:` and the name, the position or the unit of a rule, like `count:tokens=20000`.";
    by_name("count:", description, number())
}

fn cost() -> Parameter {
    parameter("cost", "The weight of the call: 1, unless this says otherwise.", ParameterIn::Query)
        .schema(Some(number()))
        .build()
}

fn cost_of_unit() -> Parameter {
    by_name("cost:", "What the call costs in units: `cost:` and the name of one, like `cost:tokens=500`.", number())
}

/// The values that render subjects, each as a parameter of its own.
fn values() -> Parameter {
    by_name("values", "The values that the keys of the policy show, by their names, like `phone=13800000000`.", text())
}

/// Parameters of several names, of which each is one of the query.
fn by_name(name: &str, description: &str, value: ObjectBuilder) -> Parameter {
    let by_name = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(value));
    let parameter = parameter(name, description, ParameterIn::Query).schema(Some(by_name));
    parameter.style(Some(ParameterStyle::Form)).explode(Some(true)).build()
}

fn parameter(name: &str, description: &str, place: ParameterIn) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(place);
    parameter.required(Required::False).description(Some(description))
}

fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn response(description: &str, media_type: &str, schema: &str) -> ResponseBuilder {
    ResponseBuilder::new().description(description).content(media_type, content(schema))
}

fn content(schema: &str) -> ContentBuilder {
    ContentBuilder::new().schema(Some(schemas::reference(schema)))
}
