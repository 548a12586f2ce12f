//! Policies that a file changes.

use reqwest::Method;
use serde_json::json;
use tallygate::config::Policies;
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::server::Server;

use super::{HOUR, Service, listing, path_of};

#[tokio::test]
async fn the_rules_of_a_file_are_shown_and_overridden_by_their_names() {
    let file = Policies::from_toml("[policy.'admin.filed']\nrules = ['5 per 1h as raised']").unwrap();
    let server = Server::start();
    for (limiter, server) in [(Limiter::in_memory(), None), (listing(&server).await, Some(server))] {
        let policy = Policy::builder("admin.filed").rule(Rule::sliding_window(2, HOUR).named("hourly"));
        let policy = policy.key("{user}").build().unwrap();
        limiter.apply(&file).unwrap();
        let service = Service::in_axum(limiter, server).await;
        assert!(service.limiter.check(&policy, &Subject::of("zoe")).await.unwrap().is_allowed());
        service.listed(&policy).await;
        let rule = json!({ "position": 0, "name": "raised", "rule": "5 per 1h as raised", "label": null });
        assert_eq!(service.get(&path_of(&policy, "")).await["rules"], json!([rule]));
        let peeked = service.get(&path_of(&policy, "/subject?user=zoe")).await;
        assert_eq!((&peeked["rules"][0]["name"], &peeked["rules"][0]["remaining"]), (&json!("raised"), &json!(4)));
        let path = path_of(&policy, "/override");
        let set = service.done(Method::PUT, &path, r#"{"rules":"raised = 7 per 1h"}"#).await;
        assert_eq!(set["set"]["rules"], json!([{ "replaces": "raised", "rule": "7 per 1h" }]));
        assert_eq!(service.get(&path_of(&policy, "/subject?user=zoe")).await["rules"][0]["remaining"], 6);
        let (status, detail) = service.mistake(Method::PUT, &path, r#"{"rules":"hourly = 7 per 1h"}"#).await;
        assert!(status == 422 && detail.contains("`hourly`"), "{status} {detail}");
    }
}
