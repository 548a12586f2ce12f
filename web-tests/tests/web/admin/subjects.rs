//! What policies there are, where a subject stands, and to let it start again.

use reqwest::Method;
use serde_json::{Value, json};
use tallygate::config::Policies;
use tallygate::{Limiter, Policy, Rule};

use super::{HOUR, Service, codes, path_of};

#[tokio::test]
async fn policies_are_listed_with_keys_rules_bans_and_overrides() {
    let policy = codes("admin.listed");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        service.done(Method::PUT, &path_of(&policy, "/override"), r#"{"rules":"9 per 1h"}"#).await;
        let listed = service.get("/policies").await;
        let listed = listed["policies"].as_array().unwrap();
        let mut found: Vec<_> = listed.iter().filter(|listed| listed["name"] == "admin.listed").collect();
        let mut found = found.pop().filter(|_| found.is_empty()).cloned().unwrap();
        let mut alone = service.get(&path_of(&policy, "")).await;
        // The one that is read later may have been seen again.
        let [seen, seen_later] = [&mut found, &mut alone]
            .map(|listed| listed.as_object_mut().unwrap().remove("seen").unwrap().as_u64().unwrap());
        assert!(1_700_000_000 < seen && seen <= seen_later, "{seen}, {seen_later}");
        assert_eq!(alone, found);
        let rule =
            |position, name, rule, label| json!({ "position": position, "name": name, "rule": rule, "label": label });
        let expected = json!({
            "name": "admin.listed",
            "key": "sms:{phone}",
            "subjects": [{ "label": "network", "key": "{@ip}" }],
            "rules": [
                rule(0, Some("hourly"), "2 per 1h as hourly", None),
                rule(1, None, "100 per 1h", Some("network")),
            ],
            "ban": { "denials": 3, "within_ms": 3_600_000, "duration_ms": 7_200_000 },
            "longest_pause_ms": null,
            "prefetch_ms": null,
            "plans": {},
            "shadow": service.server.is_some().then_some(false),
            "version": env!("CARGO_PKG_VERSION"),
            "overrides": [{
                "policy": "admin.listed",
                "label": null,
                "subject": null,
                "rules": [{ "replaces": null, "rule": "9 per 1h" }],
                "expires_in_ms": null,
            }],
        });
        assert_eq!(found, expected);
    }
}

fn remaining(peeked: &Value) -> Vec<u64> {
    peeked["rules"].as_array().unwrap().iter().map(|rule| rule["remaining"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_peek_shows_where_each_rule_stands_and_counts_nothing() {
    let policy = codes("admin.peeked");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        for _ in 0..3 {
            let peeked = service.get(&path_of(&policy, "/subject?phone=138&@ip=192.0.2.1")).await;
            assert_eq!((&peeked["subject"], &peeked["admitted"]), (&json!("sms:138"), &json!(true)));
            assert_eq!(peeked["others"], json!([{ "label": "network", "subject": "192.0.2.1" }]));
            assert_eq!((remaining(&peeked), &peeked["missing"]), (vec![1, 99], &json!([])));
        }
        assert!(service.call(&policy, "138").await && !service.call(&policy, "138").await);
        let peeked = service.get(&path_of(&policy, "/subject?phone=138&@ip=192.0.2.1")).await;
        assert_eq!((&peeked["admitted"], &peeked["denied"]["kind"]), (&json!(false), &json!("limited")));
        assert!(peeked["denied"]["retry_after_ms"].as_u64().unwrap() > 3_000_000);
        let new = service.get(&path_of(&policy, "/subject?phone=139&@ip=192.0.2.9")).await;
        assert_eq!((remaining(&new), &new["rules"][0]["reset_ms"]), (vec![2, 100], &json!(0)));
    }
}

#[tokio::test]
async fn a_peek_shows_rules_in_shadow_among_the_others() {
    let rules = super::codes_builder("admin.tried").rule(Rule::fixed_window(1, HOUR).shadow());
    let policy = rules.rule_on("network", Rule::fixed_window(9, HOUR).shadow()).build().unwrap();
    for service in Service::all().await {
        service.calls(&policy, "138", 2).await;
        let path = path_of(&policy, "/subject?phone=138&@ip=192.0.2.1");
        let peeked = service.get(&path).await;
        assert_eq!((remaining(&peeked), &peeked["denied"]["rule"]), (vec![0, 98, 0, 7], &json!(0)));
        let shadows: Vec<_> = peeked["rules"].as_array().unwrap().iter().map(|rule| &rule["shadow"]).collect();
        assert_eq!(shadows, [&json!(false), &json!(false), &json!(true), &json!(true)]);
        let new = service.get(&path_of(&policy, "/subject?phone=139")).await;
        assert_eq!((remaining(&new), &new["missing"][0]["label"]), (vec![2, 1], &json!("network")));
        service.done(Method::DELETE, &path_of(&policy, "/subject?phone=138"), "").await;
        assert_eq!(remaining(&service.get(&path).await), [2, 98, 1, 7]);
        assert_eq!(service.get(&path_of(&policy, "/bans")).await["bans"], json!([]));
    }
}

#[tokio::test]
async fn a_peek_leaves_out_the_rules_of_subjects_that_are_not_named() {
    let policy = codes("admin.partly");
    for service in Service::all().await {
        service.calls(&policy, "138", 2).await;
        let peeked = service.get(&path_of(&policy, "/subject?phone=138")).await;
        assert_eq!(peeked["missing"], json!([{ "label": "network", "key": "{@ip}" }]));
        assert_eq!((remaining(&peeked), &peeked["admitted"]), (vec![0], &json!(false)));
        let peeked = service.get(&path_of(&policy, "/subject?@ip=192.0.2.1")).await;
        assert_eq!((remaining(&peeked), &peeked["admitted"]), (vec![98], &Value::Null));
        assert_eq!((&peeked["subject"], &peeked["missing"][0]["label"]), (&Value::Null, &Value::Null));
    }
}

#[tokio::test]
async fn a_whole_subject_stands_in_place_of_values() {
    let policy = codes("admin.whole");
    for service in Service::all().await {
        service.calls(&policy, "+86 138", 1).await;
        let by_value = service.get(&path_of(&policy, "/subject?phone=%2B86+138&@ip=192.0.2.1")).await;
        assert_eq!((remaining(&by_value), &by_value["subject"]), (vec![1, 99], &json!("sms:+86%20138")));
        let whole = "/subject?subject=sms:%2B86%2520138&subject:network=192.0.2.1";
        assert_eq!(service.get(&path_of(&policy, whole)).await["subject"], by_value["subject"]);
    }
}

#[tokio::test]
async fn the_value_of_alternatives_says_which_one_it_is() {
    let policy =
        Policy::builder("admin.either").rule(Rule::sliding_window(2, HOUR)).key("{@user|@ip}").build().unwrap();
    let service = Service::in_axum(tallygate::Limiter::in_memory(), None).await;
    service.listed(&policy).await;
    for subject in ["user:zoe", "ip:192.0.2.1"] {
        let peeked = service.get(&format!("/policies/admin.either/subject?@user|@ip={subject}")).await;
        assert_eq!(peeked["subject"], subject);
    }
    let (status, detail) = service.mistake(Method::GET, "/policies/admin.either/subject?@user=zoe", "").await;
    assert!(status == 422 && detail.contains("no key shows `@user`"), "{status} {detail}");
}

#[tokio::test]
async fn a_reset_lets_the_main_subject_start_again_and_no_other() {
    let policy = codes("admin.reset");
    for service in Service::all().await {
        service.calls(&policy, "138", 5).await;
        let reset = service.done(Method::DELETE, &path_of(&policy, "/subject?phone=138"), "").await;
        assert_eq!(reset, json!({ "policy": "admin.reset", "reset": ["sms:138"], "trace_ms": null }));
        let peeked = service.get(&path_of(&policy, "/subject?phone=138&@ip=192.0.2.1")).await;
        assert_eq!((remaining(&peeked), &peeked["admitted"]), (vec![2, 98], &json!(true)));
    }
}

#[tokio::test]
async fn all_subjects_of_a_call_start_again_if_that_is_said() {
    let policy = codes("admin.reset-all");
    for service in Service::all().await {
        service.calls(&policy, "138", 2).await;
        let path = path_of(&policy, "/subjects?phone=138&@ip=192.0.2.1");
        let reset = service.done(Method::DELETE, &path, "").await;
        assert_eq!(reset["reset"], json!(["sms:138", "192.0.2.1"]));
        let peeked = service.get(&path_of(&policy, "/subject?phone=138&@ip=192.0.2.1")).await;
        assert_eq!(remaining(&peeked), [2, 100]);
    }
}

#[tokio::test]
async fn names_with_any_character_are_reached() {
    let names = ["admin::codes", "admin/codes", "admin 100 %", "admin%2Fcodes", "admin.短信"];
    let policies = names.map(codes);
    for service in Service::all().await {
        for policy in &policies {
            service.calls(policy, "138", 1).await;
            let peeked = service.get(&path_of(policy, "/subject?phone=138")).await;
            assert_eq!((&peeked["policy"], remaining(&peeked)), (&json!(policy.name()), vec![1]));
        }
    }
}

#[tokio::test]
async fn a_policy_whose_counts_depend_on_the_call_shows_what_is_used() {
    let policy = Policy::builder("admin.plans").rule(Rule::sliding_window(1, HOUR).varying()).key("{user}");
    let policy = policy.build().unwrap();
    for service in Service::all().await {
        let plan = policy.with_counts([5]);
        assert!(service.limiter.check(&plan, &tallygate::Subject::of("zoe")).await.unwrap().is_allowed());
        service.listed(&policy).await;
        let peeked = service.get("/policies/admin.plans/subject?user=zoe").await;
        let rule = &peeked["rules"][0];
        assert_eq!((&rule["used"], &rule["limit"], &rule["rule"]), (&json!(1), &Value::Null, &json!("n per 1h")));
        assert_eq!(peeked["admitted"], Value::Null);
    }
}

#[tokio::test]
async fn a_peek_is_for_the_plan_or_the_count_that_is_asked_about() {
    let policy = Policy::builder("admin.planned").rule(Rule::sliding_window(1, HOUR).varying()).key("{user}");
    let policy = policy.build().unwrap();
    let file = Policies::from_toml("[plans]\nfree = 1\npaid = 500").unwrap();
    for service in Service::all().await {
        service.limiter.apply(&file).unwrap();
        let zoe = tallygate::Subject::of("zoe");
        assert!(service.limiter.check(&policy.with_counts([500]), &zoe).await.unwrap().is_allowed());
        service.listed(&policy).await;
        assert_eq!(service.get("/policies/admin.planned").await["plans"], json!({ "free": 1, "paid": 500 }));
        let path = "/policies/admin.planned/subject?user=zoe";
        for (asked, admitted, limit) in [
            ("plan=free", false, 1),
            ("plan:0=free", false, 1),
            ("plan:calls=paid", true, 500),
            ("plan=paid", true, 500),
            ("count=7", true, 7),
            ("count:0=1", false, 1),
        ] {
            let peeked = service.get(&format!("{path}&{asked}")).await;
            let rule = &peeked["rules"][0];
            assert_eq!((&peeked["admitted"], &rule["limit"]), (&json!(admitted), &json!(limit)), "{asked}: {peeked}");
        }
        let unknown = "policy `admin.planned` has no plan `piad`; did you mean `paid`? Its plans are `free`, `paid`";
        let number = "`count` must be a whole number, like `count=100`";
        let unnamed = "a count without a rule before its equals sign; name the rule of each count, like `count:0=100`, by its \
                       position, name or unit";
        for (asked, mistake) in [("plan=piad", unknown), ("count=many", number), ("count:=7", unnamed)] {
            let found = service.mistake(Method::GET, &format!("{path}&{asked}"), "").await;
            assert_eq!(found, (422, mistake.to_owned()));
        }
        let (status, mistake) = service.mistake(Method::DELETE, &format!("{path}&plan=free"), "").await;
        assert!(status == 422 && mistake.contains("plan"), "only a peek is about a plan: {status} {mistake}");
    }
}

#[tokio::test]
async fn a_peek_is_for_the_costs_that_are_asked_about() {
    let policy = Policy::builder("admin.costs").rule(Rule::sliding_window(5, HOUR)).key("{user}");
    let policy = policy.rule(Rule::sliding_window(1_000, HOUR).counting("tokens")).build().unwrap();
    for service in Service::all().await {
        let zoe = tallygate::Subject::of("zoe");
        assert!(service.limiter.check(&policy, &zoe).cost_of("tokens", 400).await.unwrap().is_allowed());
        service.listed(&policy).await;
        let path = "/policies/admin.costs/subject?user=zoe";
        for (asked, denied) in [
            ("cost:tokens=600", None),
            ("cost:tokens=601", Some(1)),
            ("cost=5&cost:tokens=1", Some(0)),
            ("cost:calls=4", None),
        ] {
            let peeked = service.get(&format!("{path}&{asked}")).await;
            assert_eq!(peeked["denied"]["rule"], json!(denied), "{asked}: {peeked}");
        }
        for (asked, mistake) in [
            ("cost:tokns=1", "no rule of admin.costs counts the unit `tokns`; did you mean `tokens`?"),
            ("cost:tokens=many", "`cost:tokens` must be a whole number, like `cost:tokens=100`"),
            ("cost=1&cost:calls=2", "the cost in `calls` is given twice; give it once"),
        ] {
            let found = service.mistake(Method::GET, &format!("{path}&{asked}"), "").await;
            assert_eq!(found, (422, mistake.to_owned()));
        }
    }
}

#[tokio::test]
async fn an_override_of_one_unit_leaves_the_limits_of_the_others() {
    let policy = Policy::builder("admin.units").rule(Rule::sliding_window(5, HOUR)).key("{user}");
    let policy = policy.rule(Rule::sliding_window(1_000, HOUR).counting("tokens")).build().unwrap();
    for service in Service::all().await {
        let zoe = tallygate::Subject::of("zoe");
        assert!(service.limiter.check(&policy, &zoe).cost_of("tokens", 400).await.unwrap().is_allowed());
        service.listed(&policy).await;
        let path = "/policies/admin.units/override?user=zoe";
        let set = service.ask(Method::PUT, path, r#"{"rules":"50_000 tokens per 1h"}"#).await;
        assert_eq!(set.status, 200, "{}", set.body);
        let peeked = service.get("/policies/admin.units/subject?user=zoe").await;
        let limits = peeked["rules"].as_array().unwrap().iter().map(|rule| (&rule["limit"], &rule["used"]));
        assert_eq!(limits.collect::<Vec<_>>(), [(&json!(5), &json!(1)), (&json!(50_000), &json!(400))], "{peeked}");
        let (status, mistake) = service.mistake(Method::PUT, path, r#"{"rules":"50 tokns per 1h"}"#).await;
        assert!(status == 422 && mistake.contains("did you mean `tokens`?"), "{status} {mistake}");
    }
}

#[tokio::test]
async fn a_value_of_a_key_goes_before_the_plan_that_is_asked_about() {
    let policy = Policy::builder("admin.valued").rule(Rule::sliding_window(1, HOUR).varying()).key("{plan}");
    let policy = policy.build().unwrap();
    let service = Service::in_axum(Limiter::in_memory(), None).await;
    let peeked = service.get("/policies/admin.valued/subject?plan=paid&count=3").await;
    assert_eq!((&peeked["subject"], &peeked["rules"][0]["limit"]), (&json!("paid"), &json!(3)));
    drop(policy);
}
