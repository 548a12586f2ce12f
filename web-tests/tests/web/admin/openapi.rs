//! The document of the routes, compared with what they do.

use std::collections::BTreeSet;

use boon::{Compiler, Schemas};
use reqwest::Method;
use serde_json::{Value, json};
use tallygate::Limiter;
use tallygate::web::AdminRoutes;
use tallygate_web_tests::Answer;
use utoipa::openapi::OpenApi;

use super::{PREFIX, Service, codes_builder};

const BODY: &str = r#"{"rules":"9 per 1h","for":"2h"}"#;
const METHODS: [&str; 3] = ["get", "put", "delete"];

/// The document of a service that has them under its prefix.
fn document() -> Value {
    serde_json::to_value(OpenApi::default().nest(PREFIX, AdminRoutes::openapi())).unwrap()
}

/// An operation of the document: its path without the prefix, its method, and its responses.
struct Operation {
    path: String,
    method: Method,
    responses: Value,
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let path = path.strip_prefix(PREFIX).unwrap().to_owned();
        let responses = METHODS.iter().filter_map(|method| Some((*method, item.get(*method)?["responses"].clone())));
        let operation = |(method, responses): (&str, _)| {
            let method = method.to_uppercase().parse().unwrap();
            Operation { path: path.clone(), method, responses }
        };
        responses.map(operation).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

impl Operation {
    fn path(&self, policy: &str) -> String {
        self.path.replace("{name}", policy).replace("{label}", "network")
    }

    fn body(&self) -> &'static str {
        match self.path.rsplit('/').next() {
            Some("pause") if self.method == Method::PUT => r#"{"duration":"10m"}"#,
            Some("override" | "{label}") if self.method == Method::PUT => BODY,
            _ => "",
        }
    }

    /// The query of a request that is carried out.
    fn query(&self) -> &'static str {
        match self.path.rsplit('/').next().unwrap() {
            "subject" | "ban" | "pause" => "?phone=138",
            "subjects" => "?phone=138&@ip=192.0.2.1",
            "{label}" => "?@ip=192.0.2.1",
            "override" => "?phone=139",
            _ => "",
        }
    }

    /// Checks that the document has such an answer, and returns its status.
    fn check(&self, document: &Value, answer: &Answer) -> String {
        let status = answer.status.to_string();
        let case = format!("{} {}: {status} {}", self.method, self.path, answer.body);
        let mut response = self.responses.get(&status).unwrap_or_else(|| panic!("{case}"));
        if let Some(pointer) = response["$ref"].as_str() {
            response = document.pointer(pointer.strip_prefix('#').unwrap()).unwrap();
        }
        let content = &response["content"][answer.header("content-type").unwrap()];
        let schema = content["schema"]["$ref"].as_str().unwrap_or_else(|| panic!("{case}"));
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("document.json", document.clone()).unwrap();
        let schema = compiler.compile(&format!("document.json{schema}"), &mut schemas).unwrap();
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        schemas.validate(&body, schema).unwrap_or_else(|error| panic!("{case}: {error}"));
        status
    }
}

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let (document, policy) = (document(), codes_builder("admin.documented").pausable().build().unwrap());
    let service = Service::in_axum_and_redis().await;
    service.calls(&policy, "138", 3).await;
    let in_memory = Service::in_axum(Limiter::in_memory(), None).await;
    let without_redis = {
        let mut service = Service::in_axum_and_redis().await;
        service.server.as_mut().unwrap().kill();
        service
    };
    let operations = operations(&document);
    assert_eq!(operations.len(), 17);
    for operation in &operations {
        let (path, body, query) = (operation.path(policy.name()), operation.body(), operation.query());
        let ask = async |service: &Service, path: &str, body: &str| {
            operation.check(&document, &service.ask(operation.method.clone(), path, body).await)
        };
        let long = " ".repeat(20_000);
        let answered = BTreeSet::from([
            ask(&service, &format!("{path}{query}"), body).await,
            ask(&service, &format!("{path}?phone=%FF"), body).await,
            ask(&service, &format!("{path}?phon=138"), body).await,
            ask(&service, &operation.path("admin.undocumented"), body).await,
            ask(&in_memory, &format!("{path}{query}"), body).await,
            ask(&without_redis, &format!("{path}{query}"), body).await,
            ask(&service, &path, &long).await,
        ]);
        let documented: BTreeSet<_> = operation.responses.as_object().unwrap().keys().cloned().collect();
        assert_eq!(answered, documented, "{} {}", operation.method, operation.path);
    }
}

#[tokio::test]
async fn every_path_has_the_methods_of_the_document() {
    let document = document();
    let service = Service::in_axum(Limiter::in_memory(), None).await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix(PREFIX).unwrap().replace("{name}", "p").replace("{label}", "l");
        let answer = service.ask(Method::PATCH, &path, "").await;
        let allowed = answer.header("allow").unwrap().split(", ").filter(|method| *method != "HEAD");
        let documented =
            METHODS.iter().filter(|method| item.get(**method).is_some()).map(|method| method.to_uppercase());
        assert_eq!(allowed.collect::<Vec<_>>(), documented.collect::<Vec<_>>(), "{path}");
    }
}

#[test]
fn the_document_names_what_a_request_takes() {
    let document = document();
    let peek = &document["paths"]["/admin/limits/policies/{name}/subject"]["get"];
    let values = peek["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "values").unwrap();
    assert_eq!((&values["style"], &values["explode"]), (&json!("form"), &json!(true)));
    assert_eq!(values["schema"], json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    let names: Vec<_> = peek["parameters"].as_array().unwrap().iter().map(|parameter| &parameter["name"]).collect();
    assert_eq!(names, ["name", "plan", "plan:", "count", "count:", "cost", "cost:", "values"]);
    let set = &document["paths"]["/admin/limits/policies/{name}/override"]["put"]["requestBody"];
    assert_eq!(set["required"], true);
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["LimitRulesBody"]["required"], json!(["rules"]));
    let problem = serde_json::to_value(<tallygate::web::Problem as utoipa::PartialSchema>::schema()).unwrap();
    assert_eq!(schemas["LimitUnavailable"], problem);
}
