//! What is listed of a policy.

use std::time::{Duration, SystemTime};

use tallygate::config::Policies;
use tallygate::{Ban, Limiter, PlanCounts, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::Server;

use super::{HOUR, call, hourly, hourly_builder, listing_limiter, read, stored, until_listed, until_rules};

#[rate_limit(
    name = "sms.send",
    key = "sms:{phone:trim}",
    limiter = limiter,
    rule(count = 1, per = "60s", name = "short"),
    rule(count = 20, per = "1h", key = "{@ip:subnet}"),
    ban(denials = 30, within = "1h", duration = "2h"),
)]
async fn send_code(limiter: &Limiter, phone: &str) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(name = "keyless", limiter = limiter, rule(count = limit, per = "1h"), shadow)]
async fn keyless(limiter: &Limiter, limit: u64) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn the_policy_of_a_function_is_listed_with_all_that_its_attribute_says() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    let context = tallygate::context::Context::new().with("ip", "192.0.2.1");
    tallygate::context::scope(context, send_code(&limiter, "138")).await.unwrap();

    let listed = until_listed(&limiter, "sms.send", |_| true).await;
    assert_eq!(listed.rules_text(), "1 per 1m as short, 20 per 1h");
    assert_eq!(
        (listed.key(), listed.label_of(0), listed.label_of(1)),
        (Some("sms:{phone:trim}"), None, Some("{@ip:subnet}"))
    );
    let subjects: Vec<_> = listed.subjects().map(|subject| (subject.label(), subject.key())).collect();
    assert_eq!(subjects, [("{@ip:subnet}", Some("{@ip:subnet}"))]);
    assert_eq!(listed.ban(), Some(Ban::new(30, HOUR, 2 * HOUR)));
    assert_eq!((listed.version(), listed.is_shadow()), (env!("CARGO_PKG_VERSION"), false));
    let age = SystemTime::now().duration_since(listed.seen()).unwrap_or_default();
    assert!(age < Duration::from_secs(600), "{age:?}");
    assert_eq!(listed.policy().unwrap(), Limiter::policy("sms.send").unwrap());
    let text = &stored(&server)["sms.send"];
    assert!(!text.contains("138") && !text.contains("192.0.2.1"), "{text}");
}

#[tokio::test]
async fn a_function_without_a_key_in_shadow_and_with_counts_of_its_calls_is_listed_as_such() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    for count in [1, 2] {
        keyless(&limiter, count).await.unwrap();
    }
    let listed = until_listed(&limiter, "keyless", |_| true).await;
    assert_eq!((listed.key(), listed.rules_text().as_str(), listed.is_shadow()), (Some(""), "n per 1h", true));
    assert!(listed.placeholders().unwrap().is_empty());
}

#[tokio::test]
async fn the_plans_of_a_file_are_listed_unless_they_are_too_long() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    limiter.apply(&Policies::from_toml("[plans]\nfree = 1\npaid = 9").unwrap()).unwrap();
    keyless(&limiter, 9).await.unwrap();
    let listed = until_listed(&limiter, "keyless", |_| true).await;
    assert_eq!(listed.plans().collect::<Vec<_>>(), [("free", &PlanCounts::One(1)), ("paid", &PlanCounts::One(9))]);

    let many: String = (0..200).fold(String::new(), |many, plan| many + &format!("plan{plan:0>100} = 1\n"));
    limiter.apply(&Policies::from_toml(format!("[plans]\n{many}")).unwrap()).unwrap();
    keyless(&limiter, 9).await.unwrap();
    let listed = until_listed(&limiter, "keyless", |listed| listed.plans().count() == 0).await;
    assert_eq!(listed.rules_text(), "n per 1h");
}

#[tokio::test]
async fn a_policy_that_was_built_by_hand_is_listed_with_the_keys_that_it_was_given() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    let builder = hourly_builder("by.hand", 5).rule_on("network", Rule::fixed_window(20, HOUR));
    let policy = builder.key_on("network", "{ip}").build().unwrap();
    let (user, network) = (Subject::of("s"), Subject::of("n"));
    assert!(limiter.check(&policy, &user).subject("network", &network).await.unwrap().is_allowed());
    let listed = until_listed(&limiter, "by.hand", |_| true).await;
    let subjects: Vec<_> = listed.subjects().map(|subject| (subject.label(), subject.key())).collect();
    assert_eq!((listed.key(), &subjects[..]), (None, &[("network", Some("{ip}"))][..]));
    assert_eq!(listed.rules_text(), "5 per 1h, 20 per fixed 1h");
}

#[tokio::test]
async fn policies_are_listed_by_name_once_however_many_calls_there_are() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    let policies = [hourly("b", 1_000), hourly("a: é", 1_000), hourly("c", 1_000)];
    for policy in &policies {
        call(&limiter, policy).await;
    }
    for policy in &policies {
        until_listed(&limiter, policy.name(), |_| true).await;
    }
    let written = server.calls("hset");
    for _ in 0..200 {
        for policy in &policies {
            assert!(call(&limiter, policy).await);
        }
    }
    assert_eq!((server.calls("hset"), written), (3, 3));
    let names: Vec<_> = read(&limiter).await.policies().iter().map(|policy| policy.name().to_owned()).collect();
    assert_eq!(names, ["a: é", "b", "c"]);
    assert!(stored(&server).contains_key("a%3A%20%C3%A9"), "a field is a name as it stands in keys");
}

#[tokio::test]
async fn variants_and_overridden_rules_are_not_listed_as_policies_of_their_own() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    let policy = hourly("varied", 5);
    limiter.override_policy("varied").rules([Rule::sliding_window(7, HOUR)]).set().await.unwrap();
    assert!(call(&limiter, &policy.with_counts([9])).await);
    until_rules(&limiter, &policy.with_counts([8]), "5 per 1h").await;
    assert_eq!(stored(&server).len(), 1);
}

#[tokio::test]
async fn rules_of_a_file_are_listed_in_place_of_those_of_the_program() {
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    let policy = hourly_builder("of.file", 1_000_000).key("{user}").build().unwrap();
    until_rules(&limiter, &policy, "1000000 per 1h").await;
    limiter.apply(&Policies::from_toml("[policy.'of.file']\nrules = ['2000000 per 1h']").unwrap()).unwrap();
    until_rules(&limiter, &policy, "2000000 per 1h").await;
    assert_eq!(read(&limiter).await.find("of.file").unwrap().key(), Some("{user}"));
}

#[tokio::test]
async fn of_two_processes_with_different_rules_the_last_one_is_listed_and_none_writes_again() {
    let server = Server::start();
    let (old, new) = (listing_limiter(&server).await, listing_limiter(&server).await);
    let (old_policy, new_policy) = (hourly("deployed", 1_000), hourly("deployed", 2_000));
    until_rules(&old, &old_policy, "1000 per 1h").await;
    until_rules(&new, &new_policy, "2000 per 1h").await;
    let written = server.calls("hset");
    for _ in 0..200 {
        assert!(call(&old, &old_policy).await && call(&new, &new_policy).await);
    }
    assert_eq!((server.calls("hset"), written), (2, 2));
    assert_eq!(read(&old).await.find("deployed").unwrap().rules_text(), "2000 per 1h");
}

#[tokio::test]
async fn a_process_lists_nothing_where_that_is_turned_off_and_a_tool_lists_no_policy_of_others() {
    let server = Server::start();
    let off = server.limiter().await;
    assert!(call(&off, &hourly("unlisted", 5)).await);
    let limiter = listing_limiter(&server).await;
    assert!(limiter.peek(&hourly("only.looked.at", 5), &Subject::of("s")).await.unwrap().is_allowed());
    call(&limiter, &hourly("listed", 5)).await;
    let listed = until_listed(&limiter, "listed", |_| true).await;

    // The policy of another process, as a tool has it from the list.
    let tool = listing_limiter(&server).await;
    let before = server.calls("hset");
    assert!(call(&tool, &listed.policy().unwrap()).await);
    assert!(call(&tool, &hourly("of.the.tool", 5)).await);
    until_listed(&tool, "of.the.tool", |_| true).await;
    assert_eq!(server.calls("hset"), before + 1);
    let names: Vec<_> = read(&tool).await.policies().iter().map(|policy| policy.name().to_owned()).collect();
    assert_eq!(names, ["listed", "of.the.tool"]);
}

#[tokio::test]
async fn in_memory_there_is_no_list() {
    let limiter = Limiter::in_memory();
    let error = limiter.registered_policies().await.unwrap_err().to_string();
    assert!(error.contains("in memory") && error.contains("connect to a server"), "{error}");
    let policy: Policy = hourly("p", 5);
    assert!(call(&limiter, &policy).await);
}
