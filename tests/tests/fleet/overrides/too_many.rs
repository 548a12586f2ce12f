//! There are no more overrides than every process adopts: what no process adopts is never taken for set.

use tallygate::Subject;
use tallygate_harness::log::Log;
use tallygate_harness::server::Server;

use super::{clear, hourly, override_for, override_rules, policy, room, subject, until};

const FULL: &str = "there are 10000 overrides already";
const NOT_ADOPTED: &str = "the change is stored, but no process adopts it";

/// Stores overrides for so many subjects past the library, which counts them.
fn store_by_hand(server: &Server, kind: &str, number: usize, text: &str) {
    let mut hset = redis::cmd("HSET");
    hset.arg("tallygate:!overrides");
    for number in 0..number {
        hset.arg(format!("over.ride:{kind}:{number}")).arg(text);
    }
    hset.exec(&mut server.connection()).unwrap();
}

fn stored(server: &Server) -> usize {
    let fields: usize = server.ask("HLEN tallygate:!overrides");
    fields - server.ask::<usize>("HEXISTS tallygate:!overrides !version")
}

#[tokio::test]
async fn there_are_no_more_overrides_than_a_process_adopts() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, [hourly(0)]).await;
    store_by_hand(&server, "user", 9_999, "7 per 1h");
    let refused = override_for(&limiter, &subject(), 1).await.unwrap_err().to_string();
    assert!(refused.contains(FULL), "{refused}");
    override_rules(&limiter, [hourly(1)]).await;
    clear(&limiter).await;
    let last = Subject::of("user").and(9_998);
    assert_eq!(room(&limiter, &policy(3), &last).await, 7, "all of them were adopted");
    server.ask::<()>("HSET tallygate:!overrides a x b x !version many");
    let (log, _listening) = Log::listen();
    until(async || {
        assert!(!limiter.check(&policy(3), &last).await.unwrap().is_allowed());
        log.lines().iter().any(|line| line.contains("too many overrides"))
    })
    .await;
    assert_eq!(room(&limiter, &policy(3), &Subject::of("user").and(9_997)).await, 7, "the last known ones hold");
}

#[tokio::test]
async fn processes_that_set_the_last_override_at_the_same_time_do_not_pass_the_bound_together() {
    let server = Server::start();
    store_by_hand(&server, "user", 9_999, "7 per 1h");
    let limiters = [server.limiter().await, server.limiter().await, server.limiter().await];
    let subjects = ["a", "b", "c"].map(Subject::of);
    let [a, b, c] = [0, 1, 2].map(|at| override_for(&limiters[at], &subjects[at], 0));
    let (a, b, c) = tokio::join!(a, b, c);
    let refusals: Vec<_> = [a, b, c].into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    assert!(refusals.len() == 2 && refusals.iter().all(|refusal| refusal.contains(FULL)), "{refusals:?}");
    assert_eq!(stored(&server), 10_000);
    for limiter in &limiters {
        assert_eq!(limiter.overrides().await.unwrap().len(), 10_000, "each process adopts them");
    }
}

#[tokio::test]
async fn a_change_that_no_process_adopts_is_an_error() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, [hourly(5)]).await;
    store_by_hand(&server, "user", 10_001, "7 per 1h");
    let set = limiter.override_policy("over.ride").rules([hourly(0)]).allow_unknown().set();
    let error = set.await.unwrap_err().to_string();
    assert!(error.contains(NOT_ADOPTED), "{error}");
    assert_eq!(room(&limiter, &policy(3), &subject()).await, 5, "the last known ones hold");
    let of_one = limiter.override_policy("over.ride").subject(&Subject::of("user").and(0));
    let error = of_one.clear().await.unwrap_err().to_string();
    assert!(error.contains(NOT_ADOPTED), "{error}");
    assert_eq!(stored(&server), 10_001, "it is cleared all the same");
    clear(&limiter).await;
    assert_eq!(stored(&server), 10_000);
    assert_eq!(limiter.overrides().await.unwrap().len(), 10_000, "now they are adopted");
}

#[tokio::test]
async fn expired_overrides_make_room_although_there_are_too_many_to_be_read() {
    let server = Server::start();
    let limiter = server.limiter().await;
    store_by_hand(&server, "user", 9_990, "7 per 1h");
    store_by_hand(&server, "past", 100, "7 per 1h until 1");
    override_rules(&limiter, [hourly(0)]).await;
    assert_eq!(stored(&server), 9_991);
    assert_eq!(room(&limiter, &policy(3), &subject()).await, 0);
}

#[tokio::test]
async fn the_script_refuses_what_there_is_no_room_for_and_changes_nothing() {
    let server = Server::start();
    let change = |arguments: &[&str]| -> i64 {
        let mut change = redis::cmd("EVAL");
        change.arg(tallygate_lua::OVERRIDE).arg(1).arg("tallygate:!overrides").arg(arguments);
        change.query(&mut server.connection()).unwrap()
    };
    assert_eq!(change(&["v1", "2", "a", "1 per 1h"]), 0);
    assert_eq!(change(&["v2", "2", "b", "1 per 1h"]), 0);
    assert_eq!(change(&["v3", "2", "c", "1 per 1h"]), -1);
    assert_eq!(server.ask::<String>("HGET tallygate:!overrides !version"), "v2", "nobody has to read them again");
    assert_eq!(change(&["v4", "2", "b", "2 per 1h"]), 1, "what is there may be replaced");
    assert_eq!(change(&["v5", "2", "c", "1 per 1h", "b", "2 per 1h"]), 0, "what has expired makes room");
    server.ask::<()>("HSET tallygate:!overrides x expired");
    assert_eq!(change(&["v6", "2", "d", "1 per 1h", "x", "expired"]), -1);
    assert_eq!(
        server.ask::<String>("HGET tallygate:!overrides !version"),
        "v6",
        "the others are not too many any more"
    );
    assert_eq!(change(&["v7", "2", "a", ""]), 1);
    server.ask::<()>("HDEL tallygate:!overrides !version");
    assert_eq!(change(&["v8", "1", "a", "1 per 1h"]), -1, "the version is not counted, be it there or not");
    assert_eq!(change(&["v8", "2", "a", "1 per 1h"]), 0);
}

#[tokio::test]
async fn mistaken_overrides_are_reported_once_and_within_bounds() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, [hourly(0)]).await;
    let (log, _listening) = Log::listen();
    let reported = || log.lines().iter().filter(|line| line.contains("cannot be read and is ignored")).count();
    let adopted = async |version: &str| {
        let mut hset = redis::cmd("HSET");
        hset.arg("tallygate:!overrides").arg("!version").arg(version);
        hset.arg(format!("over.ride:{version}")).arg("7 per 1h").exec(&mut server.connection()).unwrap();
        let last = Subject::of(version);
        until(async || room(&limiter, &policy(3), &last).await > 0).await;
    };
    store_by_hand(&server, "few", 5, "everything");
    adopted("few").await;
    assert_eq!(reported(), 5);
    adopted("again").await;
    assert_eq!(reported(), 5, "each is reported once");
    store_by_hand(&server, "many", 9_000, &"x".repeat(800));
    adopted("many").await;
    assert!(reported() < 32, "{}", reported());
    // Each denied call of this test has a line of its own, for those who debug.
    let bytes: usize = log.lines().iter().filter(|line| !line.contains(" DEBUG ")).map(String::len).sum();
    assert!(bytes < 32 * 1024, "{bytes}");
    assert_eq!(room(&limiter, &policy(3), &subject()).await, 0, "those that can be read are in force");
}

#[tokio::test]
async fn overrides_that_are_too_long_together_are_not_read() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, [hourly(0)]).await;
    store_by_hand(&server, "user", 2_000, &format!("7 per 1h as \"{}\"", "x".repeat(8_000)));
    server.ask::<()>("HSET tallygate:!overrides !version long");
    let refused = limiter.overrides().await.unwrap_err().to_string();
    assert!(refused.contains("the overrides are longer than 8 MiB together; clear some"), "{refused}");
    assert_eq!(room(&limiter, &policy(3), &subject()).await, 0, "the last known ones hold");
}

#[tokio::test]
async fn an_override_has_no_more_rules_and_no_longer_names_than_a_policy() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let (log, _listening) = Log::listen();
    let many = (1..=33).map(|count| format!("{count} = 7 per 1h")).collect::<Vec<_>>().join(", ");
    let named = format!("7 per 1h as {}", "x".repeat(129));
    let mut hset = redis::cmd("HSET");
    hset.arg("tallygate:!overrides").arg("over.ride:many").arg(&many).arg("over.ride:named").arg(&named);
    hset.arg("!version").arg("x").exec(&mut server.connection()).unwrap();
    for subject in ["many", "named"] {
        assert_eq!(room(&limiter, &policy(3), &Subject::of(subject)).await, 3);
    }
    for words in ["it has 33 rules, and 32 are the most", "`name` of a rule has 128 bytes at most"] {
        assert!(log.lines().iter().any(|line| line.contains(words)), "{words}: {:?}", log.lines());
    }
    let mut set = limiter.override_policy("over.ride").allow_unknown();
    for position in 1..=33 {
        set = set.rule(position, hourly(7));
    }
    let refused = set.set().await.unwrap_err().to_string();
    assert!(refused.contains("it has 33 rules, and 32 are the most"), "{refused}");
}
