//! To ban, to list who is banned, and to end a ban.

use reqwest::Method;
use serde_json::{Value, json};
use tallygate::Subject;

use super::{HOUR, Service, codes, path_of};

#[tokio::test]
async fn a_subject_is_banned_for_a_time_and_no_longer_when_that_is_ended() {
    let policy = codes("admin.banned");
    for service in Service::all().await {
        service.calls(&policy, "139", 1).await;
        let path = path_of(&policy, "/ban?phone=138");
        let banned = service.done(Method::PUT, &path, r#"{"duration":"10m"}"#).await;
        assert_eq!(banned, json!({ "policy": "admin.banned", "banned": "sms:138", "duration_ms": 600_000 }));
        let peeked = service.get(&path_of(&policy, "/subject?phone=138")).await;
        assert_eq!((&peeked["admitted"], &peeked["denied"]["kind"]), (&json!(false), &json!("banned")));
        let wait = peeked["denied"]["retry_after_ms"].as_u64().unwrap();
        assert!((1..=600_000).contains(&wait), "{wait}");
        assert!(!service.call(&policy, "138").await && service.call(&policy, "139").await);
        let unbanned = service.done(Method::DELETE, &path, "").await;
        assert_eq!(unbanned, json!({ "policy": "admin.banned", "unbanned": ["sms:138"], "trace_ms": null }));
        assert!(service.call(&policy, "138").await);
    }
}

#[tokio::test]
async fn a_ban_without_a_duration_lasts_as_the_policy_says() {
    let policy = codes("admin.own-ban");
    for service in Service::all().await {
        service.calls(&policy, "139", 1).await;
        for body in ["", "{}", r#"{"duration":null}"#] {
            let banned = service.done(Method::PUT, &path_of(&policy, "/ban?phone=138"), body).await;
            assert_eq!(banned["duration_ms"], json!(7_200_000));
            let peeked = service.get(&path_of(&policy, "/subject?phone=138")).await;
            let wait = peeked["denied"]["retry_after_ms"].as_u64().unwrap();
            assert!((7_000_000..=7_200_000).contains(&wait), "{body}: {wait}");
            service.done(Method::DELETE, &path_of(&policy, "/ban?phone=138"), "").await;
        }
    }
}

#[tokio::test]
async fn an_empty_value_is_a_value_like_any_other() {
    let policy = codes("admin.empty");
    for service in Service::all().await {
        service.calls(&policy, "139", 1).await;
        let banned = service.done(Method::PUT, &path_of(&policy, "/ban?phone="), "").await;
        assert_eq!(banned["banned"], "sms:");
        assert!(!service.call(&policy, "").await && service.call(&policy, "139").await);
    }
}

/// The banned subjects of all pages.
async fn pages(service: &Service, path: &str) -> (Vec<Value>, usize) {
    let (mut found, mut pages, mut from) = (Vec::new(), 0, String::new());
    loop {
        let page = service.get(&format!("{path}{from}")).await;
        found.extend(page["bans"].as_array().unwrap().iter().cloned());
        pages += 1;
        match page["next"].as_str() {
            Some(next) => from = format!("?from={next}"),
            None => return (found, pages),
        }
    }
}

#[tokio::test]
async fn who_is_banned_is_listed_page_by_page() {
    let policy = codes("admin.bans");
    for service in Service::all().await {
        service.calls(&policy, "138", 2).await;
        let path = path_of(&policy, "/bans");
        assert_eq!(pages(&service, &path).await, (Vec::new(), 1));
        for phone in 0..1_000 {
            let phone = Subject::of("sms").and(phone);
            service.limiter.check(&policy, &phone).ban(HOUR).await.unwrap();
        }
        let (found, pages) = pages(&service, &path).await;
        assert!(pages > 2, "{pages}");
        for banned in &found {
            assert_eq!(banned["policy"], "admin.bans");
            assert!((1..=3_600_000).contains(&banned["retry_after_ms"].as_u64().unwrap()), "{banned}");
        }
        let mut subjects: Vec<_> = found.iter().map(|banned| banned["subject"].as_str().unwrap()).collect();
        subjects.sort_unstable();
        let mut expected: Vec<_> = (0..1_000).map(|phone| format!("sms:{phone}")).collect();
        expected.sort_unstable();
        assert_eq!(subjects, expected);
    }
}
