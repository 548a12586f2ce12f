//! The permissions that the guide lists are enough, and each of them is needed.

use std::collections::HashMap;
use std::time::Duration;

use tallygate::{Ban, Limiter, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::{until, until_found};

const HOUR: Duration = Duration::from_secs(3_600);

/// Returns the commands of the guide that create a user: on any server, on a node of a cluster too, on a sentinel, and of a
/// tool.
fn documented() -> [String; 4] {
    let page = include_str!("../../../runtime/guide/production.md");
    let commands = page.split("ACL SETUSER").skip(1).map(|rest| {
        let (command, _) = rest.split_once("```").expect("the command ends");
        format!("ACL SETUSER{}", command.replace(['\\', '\''], ""))
    });
    commands.collect::<Vec<_>>().try_into().expect("the page has four commands")
}

/// Returns a limiter that lists its policies.
async fn listing(url: &str) -> Limiter {
    connected(&patient().registry(true).denied_subjects(10), url).await
}

fn with_login(url: &str) -> String {
    url.replace("://", "://tallygate:password@")
}

/// Asks everything that a limiter can be asked.
async fn use_everything(limiter: &Limiter, other: &Limiter, subject: &Subject) {
    let rules = [Rule::sliding_window(3, HOUR), Rule::fixed_window(3, 2 * HOUR)];
    let policy = Policy::builder("p").rules(rules).ban(Ban::new(9, HOUR, HOUR)).build().unwrap();
    let check = || limiter.check(&policy, subject);
    assert!(check().await.unwrap().is_allowed());
    assert!(check().refundable().await.unwrap().into_result().unwrap().refund().await.unwrap());
    assert!(!check().cost(4).report().await.unwrap().is_allowed());
    check().ban(HOUR).await.unwrap();
    check().unban().await.unwrap();
    limiter.override_policy("p").rules([Rule::sliding_window(300, HOUR)]).expires_in(HOUR).set().await.unwrap();
    assert!(other.check(&policy, subject).report().await.unwrap().is_allowed());
    assert!(limiter.override_policy("p").clear().await.unwrap());
    check().reset().await.unwrap();
    use_leases(limiter, subject).await;
    limiter.publish_denied_subjects().await.unwrap();
    assert!(!other.top_denied("p", 1).await.unwrap().is_empty());
    limiter.ping().await.unwrap();
    until_found("the policy is listed", async || limiter.registered_policies().await.unwrap().find("p").is_some())
        .await;
}

/// Takes leases, renews them and gives them back.
async fn use_leases(limiter: &Limiter, subject: &Subject) {
    let lease = Duration::from_secs(2);
    let policy = Policy::builder("leases").rule(Rule::concurrency(1, lease)).build().unwrap();
    let check = || limiter.check(&policy, subject);
    let permit = check().await.unwrap().into_result().unwrap();
    assert!(!check().report().await.unwrap().is_allowed());
    // A reset forgets the lease, until it is renewed.
    check().reset().await.unwrap();
    until_found("the lease was renewed", async || !check().peek().await.unwrap().is_allowed()).await;
    drop(permit);
    until_found("the lease was given back", async || check().peek().await.unwrap().is_allowed()).await;
}

/// Nothing was refused there.
fn assert_enough(server: &Server) {
    let refused = server.ask::<Vec<HashMap<String, String>>>("ACL LOG");
    let refused = refused.iter().map(|entry| entry["object"].as_str());
    // By `CLIENT SETINFO`, the library tells its name, which the server does without.
    assert_eq!(refused.filter(|command| !command.starts_with("client")).collect::<Vec<_>>(), [""; 0]);
}

/// Each permission of these commands was used on one of the servers.
fn assert_needed<'a>(commands: &[&str], servers: impl IntoIterator<Item = &'a Server>) {
    let servers: Vec<_> = servers.into_iter().collect();
    let permissions = commands.iter().flat_map(|command| command.split_whitespace());
    for permission in permissions.filter_map(|word| word.strip_prefix('+')) {
        // Redis 6 counts the calls of all subcommands together.
        let (command, _) = permission.split_once('|').unwrap_or((permission, ""));
        let is_used = |server: &Server| server.calls(permission) + server.calls(command) > 0;
        assert!(servers.iter().any(|server| is_used(server)), "{permission} is not needed");
    }
}

#[tokio::test]
async fn a_user_with_the_documented_permissions_can_do_everything_and_needs_them_all() {
    let server = Server::start();
    let [user, ..] = documented();
    server.ask::<()>(&user);
    let url = with_login(&server.url());
    let [limiter, other] = [listing(&url).await, listing(&url).await];
    use_everything(&limiter, &other, &Subject::of("s")).await;
    assert_enough(&server);
    assert_needed(&[&user], [&server]);
}

#[tokio::test]
async fn a_tool_that_looks_for_subjects_needs_two_more() {
    let server = Server::start();
    let [user, .., of_a_tool] = documented();
    server.ask::<()>(&user);
    server.ask::<()>(&of_a_tool);
    let limiter = listing(&with_login(&server.url())).await;
    let policy = Policy::builder("p").rule(Rule::sliding_window(3, HOUR)).build().unwrap();
    assert!(limiter.check(&policy, &Subject::of("s")).await.unwrap().is_allowed());
    let mut tallies = limiter.tallies(&policy, None).unwrap();
    while tallies.next_page().await.unwrap().is_some() {}
    assert_enough(&server);
    assert_needed(&[&of_a_tool], [&server]);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_two_more_permissions_are_enough_and_needed() {
    let cluster = Cluster::start();
    let [user, in_clusters, ..] = documented();
    for node in cluster.nodes() {
        node.ask::<()>(&user);
        node.ask::<()>(&in_clusters);
    }
    let url = with_login(&cluster.url());
    let [limiter, other] = [listing(&url).await, listing(&url).await];
    for subject in (0..6).map(Subject::of) {
        use_everything(&limiter, &other, &subject).await;
    }
    // Two keys of a slot that is on its way, and two keys of different slots.
    let policy =
        Policy::builder("pair").rule(Rule::sliding_window(9, HOUR)).rule_on("b", Rule::sliding_window(9, HOUR));
    let policy = policy.build().unwrap();
    let slot = cluster.slot_of("{tag}");
    let from = cluster.owner(slot).port();
    cluster.begin_move(slot, cluster.masters().iter().find(|master| master.port() != from).unwrap());
    let tagged = |value: &str| limiter.subject().text("{tag}").value(value).build();
    for (a, b) in [(tagged("a"), tagged("b")), (Subject::of("a"), Subject::of("b"))] {
        let permit = limiter.check(&policy, &a).subject("b", &b).refundable().await.unwrap().into_result().unwrap();
        assert!(permit.refund().await.unwrap());
    }
    cluster.nodes().for_each(assert_enough);
    assert_needed(&[&user, &in_clusters], cluster.nodes());
}

#[tokio::test(flavor = "multi_thread")]
async fn at_sentinels_a_user_may_ask_and_listen_and_needs_no_more() {
    let servers = Sentinels::start();
    let [user, _, at_sentinels, _] = documented();
    for server in [servers.primary(), servers.replica()] {
        server.ask::<()>(&user);
    }
    for sentinel in servers.sentinels() {
        sentinel.ask::<()>(&at_sentinels);
    }
    let url = with_login(&servers.url());
    let [limiter, other] = [listing(&url).await, listing(&url).await];
    use_everything(&limiter, &other, &Subject::of("s")).await;
    servers.fail_over();
    until("the old primary follows the new one", || servers.has_handed_over()).await;
    use_everything(&limiter, &other, &Subject::of("t")).await;
    servers.sentinels().iter().for_each(assert_enough);
    for permission in at_sentinels.split_whitespace().filter(|word| word.starts_with(['+', '&'])) {
        let without = at_sentinels.replace(&format!(" {permission}"), "").replace(" on ", " reset on ");
        servers.sentinels().iter().for_each(|sentinel| sentinel.ask(&without));
        assert!(patient().connect(&url).await.is_err(), "{permission} is not needed");
    }
}
