//! Overrides are listed and looked up.

use tallygate::{Limiter, RuleId, Subject};
use tallygate_harness::server::Server;

use super::{HOUR, every_backend, hourly, override_rules};

every_backend!(
    all_overrides_are_listed_in_order,
    one_override_is_looked_up,
    a_change_says_whether_there_was_an_override
);

async fn all_overrides_are_listed_in_order(limiter: Limiter) {
    assert!(limiter.overrides().await.unwrap().is_empty());
    let set = async |policy: &str, label: Option<&str>, subject: Option<&Subject>, text: &str| {
        let mut builder = limiter.override_policy(policy).text(text).allow_unknown();
        if let Some(label) = label {
            builder = builder.label(label);
        }
        if let Some(subject) = subject {
            builder = builder.subject(subject);
        }
        builder.set().await.unwrap();
    };
    let vip = Subject::of("user").and("vip:1");
    let long_name = "a.".repeat(60);
    set("over.ride", None, Some(&vip), "daily = 500 per 1d, 0 = 5 per 1s burst 9 for 2h").await;
    set("over.ride", Some("net work"), None, "0 per 1h").await;
    set("over.ride", None, None, "100 per 1h as \"per, hour\", 1000 per 1d").await;
    set(&long_name, None, Some(&Subject::of("x".repeat(300))), "1 per 1h").await;
    let all = limiter.overrides().await.unwrap();
    let shown: Vec<_> = all.iter().map(|found| (found.policy(), found.label(), found.subject())).collect();
    let digested = Subject::of("x".repeat(300));
    let expected = [
        (long_name.as_str(), None, Some(&digested)),
        ("over.ride", None, None),
        ("over.ride", None, Some(&vip)),
        ("over.ride", Some("net work"), None),
    ];
    assert_eq!(shown, expected);
    let texts: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(texts[..2], ["1 per 1h", "100 per 1h as \"per, hour\", 1000 per 1d"]);
    assert!(texts[2].starts_with("daily = 500 per 1d, 0 = 5 per 1s burst 9 for "), "{}", texts[2]);
    assert_eq!(texts[3], "0 per 1h");
    assert!(all[2].expires_in().unwrap() <= 2 * HOUR && all[1].expires_in().is_none());
    let ids: Vec<_> = all[2].rules().map(|(id, rule)| (id.cloned(), rule.count())).collect();
    assert_eq!(ids, [(Some(RuleId::from("daily")), 500), (Some(RuleId::from(0)), 5)]);
    for found in all {
        let mut builder = limiter.override_policy(found.policy());
        if let Some(label) = found.label() {
            builder = builder.label(label);
        }
        if let Some(subject) = found.subject() {
            builder = builder.subject(subject);
        }
        assert!(builder.clear().await.unwrap(), "what is listed can be cleared");
    }
    assert!(limiter.overrides().await.unwrap().is_empty());
}

async fn one_override_is_looked_up(limiter: Limiter) {
    override_rules(&limiter, [hourly(5)]).await;
    let builder = || limiter.override_policy("over.ride");
    let found = builder().get().await.unwrap().unwrap();
    assert_eq!(found.rules().collect::<Vec<_>>(), [(None, &hourly(5))]);
    assert!(builder().subject(&Subject::of("a")).get().await.unwrap().is_none());
    assert!(builder().label("network").get().await.unwrap().is_none());
}

async fn a_change_says_whether_there_was_an_override(limiter: Limiter) {
    override_rules(&limiter, [hourly(5)]).await;
    assert!(limiter.override_policy("over.ride").clear().await.unwrap());
    assert!(!limiter.override_policy("over.ride").clear().await.unwrap());
}

#[tokio::test]
async fn overrides_of_other_processes_are_listed_at_once() {
    let server = Server::start();
    let (one, other) = (server.limiter().await, server.limiter().await);
    assert!(other.overrides().await.unwrap().is_empty());
    override_rules(&one, [hourly(5)]).await;
    assert_eq!(other.overrides().await.unwrap().len(), 1);
    assert!(other.override_policy("over.ride").get().await.unwrap().is_some());
}
