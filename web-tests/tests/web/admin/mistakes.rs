//! Requests that are mistaken: each is answered with what is wrong and the remedy, and changes nothing.

use reqwest::Method;
use tallygate::{Policy, Rule};

use super::{HOUR, Service, codes, path_of};

const NOT_USED: &str = "this request does not use the subject `network`; leave it out";
const OF_OTHER: &str = "`@ip` belongs to the subject `network`, which this request does not use; leave it out";
const WHOLE: &str = "`phone` belongs to the main subject, which is given as a whole; leave it out";
const TWICE: &str = "the subject `network` is given twice; give it once";

/// Which parameters a query may have.
const QUERIES: [(Method, &str, u16, &str); 28] = [
    (Method::GET, "/subject", 422, "a value is missing for `phone`, `@ip`"),
    (Method::GET, "/subject?phon=138", 422, "no key shows `phon`; did you mean `phone`?"),
    (Method::GET, "/subject?user=zoe", 422, "no key shows `user`; there are `phone`, `@ip`"),
    (Method::GET, "/subject?phone=138&phone=139", 422, "`phone` is given twice; give it once"),
    (Method::GET, "/subject?phone=138&@ip", 422, "`@ip` has no value; write `@ip=…`"),
    (Method::PUT, "/ban?phone", 422, "`phone` has no value; write `phone=…`"),
    (Method::GET, "/bans?from", 422, "`from` has no value; write `from=…`"),
    (Method::GET, "/subject?subject=sms:138&phone=138", 422, WHOLE),
    (Method::GET, "/subject?phone=%FF", 400, "the query is not percent-encoded UTF-8"),
    (Method::GET, "/subject?subject=mail:138", 422, "its key is `sms:{phone}`; write it like `sms:PHONE`"),
    (Method::GET, "/subject?phone=138&subject:net=1", 422, "no rule on a subject `net`"),
    (Method::GET, "/subject?@ip=2001:db8::7", 422, "an IPv6 address is counted by its network"),
    (Method::DELETE, "/subject", 422, "a value is missing for `phone`"),
    (Method::DELETE, "/subject?phone=138&@ip=192.0.2.1", 422, OF_OTHER),
    (Method::DELETE, "/subjects?phone=138", 422, "a value is missing for `@ip`"),
    (Method::PUT, "/ban", 422, "a value is missing for `phone`"),
    (Method::DELETE, "/subject?phone=138&subject:network=192.0.2.1", 422, NOT_USED),
    (Method::PUT, "/ban?phone=138&subject:network=192.0.2.1", 422, NOT_USED),
    (Method::DELETE, "/ban?phone=138&subject:network=192.0.2.1", 422, NOT_USED),
    (Method::PUT, "/override?phone=138&subject:network=192.0.2.1", 422, NOT_USED),
    (Method::PUT, "/override/network?subject=192.0.2.1&subject:network=192.0.2.2", 422, TWICE),
    (Method::DELETE, "/override/network?subject=192.0.2.1&subject:network=192.0.2.2", 422, TWICE),
    (Method::PUT, "/override?phon=138", 422, "no key shows `phon`; did you mean `phone`?"),
    (Method::GET, "/bans?phone=138", 422, "`phone` is unknown; the only parameter is `from`"),
    (Method::GET, "/bans?from=later", 422, "`from` is the `next` of no page; leave it out to begin"),
    (Method::GET, "/bans?from=999-3", 422, "`from` is the `next` of no page; leave it out to begin"),
    (Method::GET, "?phone=138", 422, "`phone` is unknown; this path takes no parameters"),
    (Method::GET, "/override/netwrk", 404, "no rule on a subject `netwrk`; did you mean `network`?"),
];

#[tokio::test]
async fn a_mistaken_query_says_which_values_there_are() {
    let policy = codes("admin.queries");
    for service in Service::all().await {
        service.calls(&policy, "138", 3).await;
        for (method, rest, status, text) in &QUERIES {
            let body = if rest.contains("override") { r#"{"rules":"9 per 1h"}"# } else { "" };
            let (answered, detail) = service.mistake(method.clone(), &path_of(&policy, rest), body).await;
            assert!(answered == *status && detail.contains(text), "{method} {rest}: {answered} {detail}");
        }
        assert!(!service.call(&policy, "138").await);
    }
}

const HELD_TWICE: &str = "the rules and `for` both give how long they hold; leave one of them out";

const BODIES: [(&str, &str, u16, &str); 20] = [
    ("/ban?phone=138", "duration", 400, "the body is no JSON: expected value at line 1 column 1"),
    ("/ban?phone=138", r#""10m""#, 400, r#"write it like `{"duration":"10m"}`"#),
    ("/ban?phone=138", r#"{"duraton":"10m"}"#, 422, "`duraton` is unknown; did you mean `duration`?"),
    ("/ban?phone=138", r#"{"duration":600}"#, 422, "`duration` must be a text, like \"10m\""),
    ("/ban?phone=138", r#"{"duration":"10 minutes"}"#, 422, "`duration` has the unknown unit `minutes`; did you mean"),
    ("/ban?phone=138", r#"{"duration":"0s"}"#, 422, "`duration` must be longer than zero; to end a ban, use `DELETE`"),
    ("/ban?phone=138", r#"{"for":"10m"}"#, 422, "`for` is unknown; the only member is `duration`"),
    ("/ban?phone=138", r#"{"duration":"4000d"}"#, 422, "`duration` must be 3660d at most"),
    ("/override", "", 422, "`rules` is missing"),
    ("/override", "9 per 1h", 400, "the body is no JSON"),
    ("/override", r#"{"rules":"9 per hour"}"#, 422, "did you mean `9 per 1h`?"),
    ("/override", r#"{"rules":"dayly = 9 per 1d"}"#, 422, "no rule with the name `dayly`; its names are `hourly`"),
    ("/override", r#"{"rules":"9 per 1h","for":"2 hours"}"#, 422, "`for` has the unknown unit `hours`; did you mean"),
    ("/override", r#"{"rules":"9 per 1h","for":""}"#, 422, "`for` is empty"),
    ("/override", r#"{"rules":"9 per 1h","for":"0s"}"#, 422, "must hold for longer than zero, like `for 2h`"),
    ("/override", r#"{"rules":"9 per 1h for 1h","for":"2h"}"#, 422, HELD_TWICE),
    ("/override", r#"{"rules":"9 per 1h","for":"4000d"}"#, 422, "3660 days at most"),
    ("/override", r#"{"rule":"9 per 1h"}"#, 422, "`rule` is unknown; did you mean `rules`?"),
    (
        "/override/network",
        r#"{"rules":"hourly = 9 per 1h"}"#,
        422,
        "rule `hourly` counts the main subject; override it without a label",
    ),
    (
        "/override?phone=138",
        r#"{"rules":"1 = 9 per 1h"}"#,
        422,
        "rule 1 counts the subject `network`; override it with that label",
    ),
];

#[tokio::test]
async fn a_mistaken_body_says_how_to_write_it() {
    let policy = codes("admin.bodies");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        for (rest, body, status, text) in &BODIES {
            let (answered, detail) = service.mistake(Method::PUT, &path_of(&policy, rest), body).await;
            assert!(answered == *status && detail.contains(text), "{rest} {body}: {answered} {detail}");
        }
        let long = format!(r#"{{"rules":"{}"}}"#, " ".repeat(20_000));
        let (status, detail) = service.mistake(Method::PUT, &path_of(&policy, "/override"), &long).await;
        assert_eq!((status, detail.as_str()), (413, "the body is longer than 16 KiB; send less"));
        assert_eq!(service.get("/overrides").await["overrides"].as_array().unwrap().len(), 0);
        assert!(service.call(&policy, "138").await);
    }
}

#[tokio::test]
async fn an_unknown_policy_or_path_is_not_found_and_a_similar_name_is_said() {
    let policy = codes("admin.found");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        for (method, rest) in [(Method::GET, ""), (Method::DELETE, "/subject?phone=138"), (Method::GET, "/override")] {
            let (status, detail) = service.mistake(method, &format!("/policies/admin.fuond{rest}"), "").await;
            let is_meant = detail.contains("`admin.fuond`") && detail.ends_with("; did you mean `admin.found`?");
            assert!(status == 404 && is_meant, "{status} {detail}");
        }
        for path in [
            "",
            "/",
            "/policy",
            "/policies/",
            "/policies//ban",
            "/policies/admin.found/",
            "/policies/admin.found/subject/138",
            "/overrides/x",
        ] {
            let (status, detail) = service.mistake(Method::GET, path, "").await;
            assert!(status == 404 && detail.contains("there is no such path"), "{path}: {status} {detail}");
        }
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has() {
    let policy = codes("admin.methods");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        for (method, rest, allowed) in [
            (Method::POST, "", "GET, HEAD"),
            (Method::PUT, "/subject?phone=138", "GET, HEAD, DELETE"),
            (Method::GET, "/subjects?phone=138", "DELETE"),
            (Method::GET, "/ban?phone=138", "PUT, DELETE"),
            (Method::GET, "/pause?phone=138", "PUT, DELETE"),
            (Method::DELETE, "/bans", "GET, HEAD"),
            (Method::PATCH, "/override", "GET, HEAD, PUT, DELETE"),
        ] {
            let answer = service.ask(method.clone(), &path_of(&policy, rest), "").await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some(allowed)), "{method} {rest}");
        }
        let head = service.ask(Method::HEAD, &path_of(&policy, "/subject?phone=138"), "").await;
        assert_eq!((head.status, head.body.as_str()), (200, ""));
    }
}

#[tokio::test]
async fn what_a_policy_does_not_have_is_refused() {
    let plain = Policy::builder("admin.plain").rule_on("network", Rule::sliding_window(9, HOUR)).build().unwrap();
    for service in Service::all().await {
        let subject = tallygate::Subject::of("n");
        let check = service.limiter.check(&plain, &subject).subject("network", &subject);
        assert!(check.await.unwrap().is_allowed());
        service.listed(&plain).await;
        for (method, rest, text) in [
            (Method::PUT, "/ban", "has no ban, so nobody can be banned under it; add `ban(…)` to the policy"),
            (Method::DELETE, "/ban", "has no ban"),
            (Method::GET, "/bans", "has no ban"),
            (Method::DELETE, "/subject", "counts no main subject"),
            (Method::GET, "/subject", "give the whole subject, like `?subject=…`, or `?subject:label=…`"),
        ] {
            let (status, detail) = service.mistake(method, &path_of(&plain, rest), "").await;
            assert!(status == 422 && detail.contains(text), "{rest}: {status} {detail}");
        }
        let peeked = service.get(&path_of(&plain, "/subject?subject:network=n")).await;
        assert_eq!(peeked["rules"][0]["remaining"], 8);
    }
}

#[tokio::test]
async fn a_policy_that_another_version_lists_is_found_by_its_name() {
    for service in [Service::in_axum_and_redis().await, Service::in_actix_and_redis().await] {
        service.server.as_ref().unwrap().ask::<()>("HSET tallygate:!policies crate%3A%3Af 9");
        for rest in ["", "/subject?phone=138", "/override"] {
            let (status, detail) = service.mistake(Method::GET, &format!("/policies/crate::f{rest}"), "").await;
            assert!(
                status == 422 && detail.starts_with("policy `crate::f` is listed by another version: "),
                "{detail}"
            );
            assert!(detail.ends_with("; use the `tallygate` of that version"), "{detail}");
        }
        assert_eq!(service.get("/policies").await["unreadable"][0]["name"], "crate::f");
    }
}
