//! `doctor`: what is right and wrong about a server.

use serde_json::Value;
use tallygate::Subject;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::clustered::Clustered;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until;

use crate::console::Console;
use crate::seeded::{CALLER, Seeded, folder, sms};

/// The level and the whole text of each finding on a topic.
fn findings(json: &Value, topic: &str) -> Vec<(String, String)> {
    let servers = json["servers"].as_array().unwrap().iter();
    let all = servers.flat_map(|server| server["findings"].as_array().unwrap());
    let text = |finding: &Value, part: &str| finding[part].as_str().unwrap_or_default().to_owned();
    all.filter(|finding| finding["topic"] == topic)
        .map(|finding| (text(finding, "level"), text(finding, "text") + &text(finding, "remedy")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_persistence_has_a_warning_and_no_problem() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let json = console.run("doctor --json").expect(0).json();
    assert_eq!(json["level"], "warning");
    assert_eq!(json["servers"].as_array().map(Vec::len), Some(1));
    for topic in ["version", "eviction", "memory", "clock", "permissions", "script", "keys"] {
        assert_eq!(findings(&json, topic).first().map(|(level, _)| level.as_str()), Some("ok"), "{topic}: {json}");
    }
    // A busy machine takes its time.
    assert!(findings(&json, "latency").iter().any(|(level, _)| ["ok", "warning"].contains(&level.as_str())), "{json}");
    assert!(findings(&json, "persistence")[0].1.contains("appendonly yes"), "{json}");
    assert_eq!(findings(&json, "script")[0].1, "the server has it");
    console.run("doctor --strict").expect(1);
    seeded.server.ask::<()>("CONFIG SET appendonly yes");
    until("nothing is left to warn of", || console.run("doctor --strict").code == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_every_kind_are_played_and_compared_also_behind_a_proxy_of_several_shards() {
    let server = Server::start();
    let proxy = Clustered::start(server.port()).await;
    for (url, several) in [(server.url(), "ok"), (proxy.url(), "warning")] {
        let folder = folder();
        let json = Console { url: &url, folder: folder.path() }.run("doctor --json").expect(0).json();
        let found = findings(&json, "decisions");
        let steps =
            ["windows", "all algorithms", "duplicates", "refunds", "bans", "concurrent calls", "several keys at once"];
        assert_eq!(found.len(), steps.len(), "{json}");
        for ((level, text), step) in found.iter().zip(steps) {
            let expected = if step == "several keys at once" { several } else { "ok" };
            assert!(level == expected && text.starts_with(&format!("{step}: ")), "{level} {text}");
        }
    }
    assert_eq!(server.ask::<usize>("DBSIZE"), 0, "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_the_known_calls_that_fails_is_a_problem_if_calls_need_it() {
    let server = Server::start();
    let (url, folder) = (server.url(), folder());
    let console = Console { url: &url, folder: folder.path() };
    let level_of = |json: &Value, step: &str| {
        let found = findings(json, "decisions").into_iter().find(|(_, text)| text.starts_with(step));
        found.map(|(level, _)| level)
    };
    // No listed policy limits concurrent calls.
    server.ask::<()>("ACL SETUSER default -zrem");
    let json = console.run("doctor --json").expect(0).json();
    assert_eq!(level_of(&json, "concurrent calls"), None, "{json}");
    server.ask::<()>("ACL SETUSER default -setrange");
    let json = console.run("doctor --json").expect(1).json();
    assert_eq!(level_of(&json, "bans").as_deref(), Some("problem"), "{json}");
    assert_eq!(level_of(&json, "duplicates").as_deref(), Some("ok"), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_lose_tallies_are_found() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let (url, folder) = (server.url(), folder());
    let console = Console { url: &url, folder: folder.path() };
    server.ask::<()>("SET tallygate:session:7 x");
    server.ask::<()>("SET other:7 x");
    let json = console.run("doctor --json").expect(0).json();
    assert!(findings(&json, "eviction")[0].1.contains("maxmemory-policy noeviction"), "{json}");
    assert_eq!(findings(&json, "keys")[0].0, "warning");
    assert!(findings(&json, "keys")[0].1.contains("1 are not of this library, like `tallygate:session:7`"), "{json}");
    assert!(findings(&json, "script")[0].1.contains("does not have it"), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_library_has_stored_is_its_own() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = connected(&patient().denied_subjects(9), console.url).await;
    let (policy, caller) = (sms(), Subject::of("sms").and(CALLER));
    assert!(!fleet.check(&policy, &caller).await.unwrap().is_allowed());
    fleet.publish_denied_subjects().await.unwrap();
    console.run_words(&["override", "sms.send", "2 per 2h", "--yes"]).expect(0);
    assert_eq!(seeded.server.ask::<Vec<String>>("KEYS tallygate:!*").len(), 3);
    let json = console.run("doctor --json").expect(0).json();
    assert_eq!(findings(&json, "keys")[0].0, "ok", "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_permission_that_is_missing_is_named() {
    let server = Server::start();
    let page = include_str!("../../../runtime/guide/production.md");
    let (_, user) = page.split_once("ACL SETUSER").unwrap();
    let user = user.split_once("```").unwrap().0.replace(['\\', '\''], "");
    let (url, folder) = (server.url().replace("://", "://tallygate:password@"), folder());
    let console = Console { url: &url, folder: folder.path() };

    server.ask::<()>(&format!("ACL SETUSER{user}"));
    let json = console.run("doctor --json").expect(0).json();
    assert_eq!(findings(&json, "permissions")[0].0, "ok", "{json}");
    // What the user may not ask for is said.
    assert_eq!(findings(&json, "info")[0].0, "warning", "{json}");

    for (command, level, code) in [("getrange", "problem", 1), ("pexpire", "problem", 1), ("hdel", "warning", 0)] {
        server.ask::<()>(&format!("ACL SETUSER{user} -{command}"));
        let json = console.run("doctor --json").expect(code).json();
        let found = findings(&json, "permissions");
        assert_eq!((found.len(), found[0].0.as_str()), (1, level), "{json}");
        assert!(found[0].1.contains(&format!("`+{command}`")), "{json}");
        assert!(!json.to_string().contains("password"), "{json}");
        server.ask::<()>(&format!("ACL SETUSER{user} +{command}"));
    }
    server.ask::<()>(&format!("ACL SETUSER{user} -append"));
    let found = findings(&console.run("doctor --json").json(), "permissions");
    // A server that can say so without a change does.
    assert!(found[0].1.contains("append"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_primary_of_a_cluster_is_looked_at_also_while_one_is_away() {
    let mut cluster = Cluster::start();
    let (url, folder) = (cluster.url(), folder());
    let console = Console { url: &url, folder: folder.path() };
    for node in cluster.nodes() {
        node.ask::<()>("CONFIG SET cluster-require-full-coverage no");
    }
    let json = console.run("doctor --json").expect(0).json();
    assert_eq!(json["servers"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(findings(&json, "permissions").iter().filter(|(level, _)| level == "ok").count(), 3, "{json}");

    // Not the one that has the key by which a connection finds out whether it may write.
    let probed = cluster.owner(cluster.slot_of("tallygate:!ping")).port();
    let gone = cluster.masters_mut().iter_mut().find(|master| master.port() != probed).unwrap();
    let port = gone.port();
    gone.kill();
    let json = console.run("doctor --json").expect(1).json();
    assert_eq!(findings(&json, "connection").len(), 1, "{json}");
    let servers = json["servers"].as_array().unwrap();
    let away = servers.iter().find(|server| server["findings"][0]["topic"] == "connection").unwrap();
    assert_eq!(away["server"], format!("127.0.0.1:{port}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_scripts_is_a_problem_on_valkey_9_1() {
    let Some(server) = Server::start_without_scripts() else { return };
    let (url, folder) = (server.url(), folder());
    let console = Console { url: &url, folder: folder.path() };
    let json = console.run("doctor --json").expect(1).json();
    let (level, text) = &findings(&json, "script")[0];
    assert_eq!((level.as_str(), text.starts_with("scripts are disabled on the server")), ("problem", true), "{json}");
    assert!(text.contains("module `lua`"), "{json}");
}
