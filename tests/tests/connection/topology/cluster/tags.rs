//! Hash tags in templates: all subjects of a tenant are in one slot.

use std::collections::HashSet;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::cluster::Cluster;

#[rate_limit(
    name = "tagged",
    key = "{{{tenant}}}:{user}",
    rule(count = 2, per = "1h"),
    rule(count = 3, per = "1h", key = "{{{tenant}}}:all"),
    limiter = limiter
)]
async fn upload(limiter: &Limiter, tenant: &str, user: &str) -> Result<(), Rejection> {
    Ok(())
}

/// All keys of the policy.
fn keys(cluster: &Cluster) -> Vec<String> {
    cluster.masters().iter().flat_map(|master| master.ask::<Vec<String>>("KEYS tallygate:tagged*")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn subjects_of_one_tag_are_in_one_slot_and_decided_by_one_script() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    for user in ["ann", "ann", "bob"] {
        upload(&limiter, "acme", user).await.unwrap();
    }
    let denied = [upload(&limiter, "acme", "ann").await, upload(&limiter, "acme", "eve").await];
    assert_eq!(denied.map(|denied| denied.unwrap_err().rule().unwrap().position()), [0, 1]);
    upload(&limiter, "globe", "ann").await.unwrap();

    let slots = |tenant: &str| {
        let keys = keys(&cluster).into_iter().filter(|key| key.contains(&format!(":{{{tenant}}}:")));
        keys.map(|key| cluster.slot_of(&key)).collect::<Vec<_>>()
    };
    assert_eq!((slots("acme").len(), slots("globe").len()), (3, 2));
    assert_eq!(HashSet::from_iter(slots("acme")), HashSet::from([cluster.slot_of("acme")]));
    assert_eq!(HashSet::from_iter(slots("globe")), HashSet::from([cluster.slot_of("globe")]));

    let scripts = || cluster.masters().iter().map(|master| master.calls("evalsha")).sum::<usize>();
    let before = scripts();
    upload(&limiter, "globe", "bob").await.unwrap();
    assert_eq!(scripts(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_units_and_a_lease_is_peeked_at_and_charged_in_two_slots_and_is_one_step_where_a_tag_joins_them() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let (minute, tokens) = (Duration::from_secs(60), |count, per| Rule::sliding_window(count, per).counting("tokens"));
    let builder = Policy::builder("chat").rule(Rule::sliding_window(60, minute)).rule(tokens(20_000, minute));
    let builder = builder.rule_on("org", tokens(100_000, minute)).rule(Rule::concurrency(3, minute / 2));
    let policy = builder.build().unwrap();
    let scripts = || cluster.masters().iter().map(|master| master.calls("evalsha")).sum::<usize>();
    let tagged = |name| limiter.subject().text("{").value("acme").text("}:").value(name).build();
    let apart = [Subject::of("alice"), Subject::of("acme")];
    for ([user, org], expected) in [(apart, 6), ([tagged("alice"), tagged("all")], 1)] {
        let call = || limiter.check(&policy, &user).subject("org", &org).cost_of("tokens", 100);
        let first = call().await.unwrap();
        let before = scripts();
        assert!(first.is_allowed() && call().await.unwrap().is_allowed());
        assert_eq!(
            scripts() - before,
            expected,
            "a peek and a charge of the user, the organisation and the lease, or one step"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn braces_of_values_are_no_tag() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    for tenant in ["a}b", "{acme}", "}", "{}"] {
        upload(&limiter, tenant, "ann").await.unwrap();
        let tag = Subject::of(tenant).to_string();
        assert!(!tag.contains(['{', '}']), "{tag}");
        let keys: Vec<_> = keys(&cluster).into_iter().filter(|key| key.contains(&format!(":{{{tag}}}:"))).collect();
        assert_eq!(keys.len(), 2, "{tenant}");
        assert!(keys.iter().all(|key| cluster.slot_of(key) == cluster.slot_of(&tag)), "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_with_a_tag_is_built_by_hand_too() {
    let cluster = Cluster::shared();
    let limiter = cluster.limiter().await;
    upload(&limiter, "by-hand", "ann").await.unwrap();
    let subject = limiter.subject().text("{").value("by-hand").text("}:").value("ann").build();
    assert_eq!(subject.to_string(), "{by-hand}:ann");
    let keys: Vec<_> = keys(&cluster).into_iter().filter(|key| key.ends_with(&format!(":{subject}"))).collect();
    assert_eq!(keys.len(), 1);
}
