//! Servers, and whoever may write to them, decide neither how much is read nor what a log or a terminal shows.

use std::error::Error;
use std::time::Duration;

use tallygate::{BackendErrorKind, Limiter, Policy, Rule, Subject};
use tallygate_harness::fake::Fake;
use tallygate_harness::log::Log;
use tallygate_harness::server::{Server, patient};
use tallygate_harness::until::until_found;

/// The longest text of an error.
const MESSAGE: usize = 2_100;

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(5, Duration::from_secs(3_600))).build().unwrap()
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// A map of a cluster that has each of these slots at a node of its own.
fn map(nodes: impl Iterator<Item = (u16, String)>) -> String {
    let ranges: Vec<_> =
        nodes.map(|(slot, host)| format!("*3\r\n:{slot}\r\n:{slot}\r\n*2\r\n{}:7000\r\n", bulk(&host))).collect();
    format!("*{}\r\n{}", ranges.len(), ranges.concat())
}

/// Returns each text of an error and of its causes.
fn texts(error: &dyn Error) -> Vec<String> {
    let mut texts = Vec::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        texts.extend([error.to_string(), format!("{error:?}")]);
        cause = error.source();
    }
    texts
}

async fn fault(limiter: &Limiter) -> tallygate::BackendError {
    limiter.check(&policy(), &Subject::of("s")).await.expect_err("the server cannot decide this call")
}

/// A server that answers everything with a number.
async fn fake() -> Fake {
    let fake = Fake::start().await;
    fake.reply_with(":1\r\n");
    fake
}

#[tokio::test]
async fn a_list_of_policies_without_an_end_is_not_read_for_ever() {
    let entry = [bulk("p"), bulk("1 1\nname p\nrule 0 1 per 1h")].concat();
    for (part, most) in [("*0\r\n".to_owned(), 1_000), (format!("*2\r\n{entry}"), 1_000)] {
        let fake = fake().await;
        fake.reply_to("HSCAN", &format!("*2\r\n{}{part}", bulk("7")));
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        let refused = limiter.registered_policies().await.unwrap_err().to_string();
        assert!(refused.contains("has no end"), "{refused}");
        assert_eq!(fake.asked("HSCAN"), most);
    }
    let fake = fake().await;
    let large = [bulk("p"), bulk(&"x".repeat(1 << 20))].concat();
    fake.reply_to("HSCAN", &format!("*2\r\n{}*2\r\n{large}", bulk("7")));
    let limiter = patient().connect_lazy(fake.url()).unwrap();
    let refused = limiter.registered_policies().await.unwrap_err().to_string();
    assert!(refused.contains("larger than what processes write"), "{refused}");
    assert!(fake.asked("HSCAN") < 20, "it stops at some MiB");
}

#[tokio::test]
async fn a_walk_over_keys_ends_whatever_the_server_says() {
    let fake = fake().await;
    // As many keys as there can be, and always one place to go on.
    fake.reply_to("DBSIZE", &format!(":{}\r\n", i64::MAX));
    fake.reply_to("SCAN", &format!("*2\r\n{}*1\r\n{}", bulk("7"), bulk("tallygate:p/w1h:s")));
    let limiter = patient().connect_lazy(fake.url()).unwrap();
    let policy = policy();
    let mut tallies = limiter.tallies(&policy, None).unwrap();
    let mut subjects = 0;
    let refused = loop {
        match tallies.next_page().await {
            Ok(page) => subjects += page.unwrap().subjects().len(),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("the walk over the keys has no end"), "{refused}");
    assert_eq!((subjects, fake.asked("SCAN")), (1, 2));
}

#[tokio::test]
async fn the_list_of_policies_is_written_although_the_search_in_it_has_no_end() {
    let fake = fake().await;
    fake.admit();
    fake.reply_to("UNLINK", ":0\r\n");
    fake.reply_to("EVAL", &format!("*3\r\n{}:0\r\n:0\r\n", bulk("7")));
    let limiter = patient().registry(true).connect_lazy(fake.url()).unwrap();
    assert!(limiter.check(&policy(), &Subject::of("s")).await.unwrap().is_allowed());
    until_found("the search has stopped", async || fake.asked("EVAL") >= 1_000).await;
    // Whatever would follow is asked before this.
    for _ in 0..100 {
        assert!(limiter.check(&policy(), &Subject::of("s")).await.unwrap().is_allowed());
    }
    assert_eq!(fake.asked("EVAL"), 1_000);
}

#[tokio::test]
async fn a_map_of_a_cluster_that_is_larger_than_any_is_refused() {
    let host = |number: usize| format!("127.0.{}.{}", number / 256, number % 256);
    let nodes = |number: usize| (0..number).map(move |slot| (u16::try_from(slot).unwrap(), host(slot)));
    let odd = |name: &str| map(std::iter::once((0, name.to_owned())));
    for answer in [
        map(nodes(2_001)),
        map((0..=16_384).map(|slot| (slot % 16_384, "127.0.0.1".to_owned()))),
        odd(&"a".repeat(254)),
        odd("a\u{1b}[2J"),
        odd("a b"),
    ] {
        let fake = fake().await;
        fake.reply_to("CLUSTER", &answer);
        let limiter = patient().connect_lazy(format!("redis+cluster://{}/", fake.address())).unwrap();
        let error = fault(&limiter).await;
        assert!(error.to_string().contains("to `CLUSTER SLOTS` is none"), "{error}");
        assert_eq!(error.kind(), BackendErrorKind::Wrong);
    }
}

#[tokio::test]
async fn an_outage_of_a_cluster_is_one_line_of_the_log_and_its_end_another() {
    let (log, _listening) = Log::listen();
    let fake = fake().await;
    fake.reply_to("CLUSTER", "-LOADING Redis is loading the dataset in memory\r\n");
    let url = format!("redis+cluster://{}/", fake.address());
    let limiter = patient().connect_lazy(&url).unwrap();
    until_found("the nodes are asked again", async || {
        fault(&limiter).await;
        fake.asked("CLUSTER") >= 5
    })
    .await;
    let lines = |words: &str| log.lines().iter().filter(|line| line.contains(words)).count();
    assert_eq!(lines("no node of the redis cluster says"), 1);
    fake.reply_to("CLUSTER", &map(std::iter::once((0, "127.0.0.1".to_owned()))));
    until_found("a node answers again", async || {
        fault(&limiter).await;
        lines("says again which slots") == 1
    })
    .await;
    assert_eq!(lines("no node of the redis cluster says"), 1);
}

#[tokio::test]
async fn what_a_server_says_is_cut_and_controls_nothing() {
    let long = "x".repeat(100_000);
    for (line, words) in [
        (format!("ERR {long}"), "ERR xxx"),
        (format!("{} y", long.to_uppercase()), "XXX"),
        ("ERR a\u{1b}[2Jb\u{9b}c\u{202e}d".to_owned(), r"ERR a\u{1b}[2Jb\u{9b}c\u{202e}d"),
        (format!("OOM {long}"), "raise its `maxmemory`"),
        (format!("MOVED 1 {long}:7000"), "MOVED 1 x"),
    ] {
        let (lines, _listening) = Log::listen();
        let fake = Fake::start().await;
        fake.answer_with(&line);
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        let error = fault(&limiter).await;
        assert!(error.to_string().contains(words), "{error}");
        fake.greet_with(&line);
        let greeted = fault(&patient().connect_lazy(fake.url()).unwrap()).await;
        for text in [texts(&error), texts(&greeted), lines.lines()].concat() {
            assert!(text.len() <= MESSAGE && !text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
        }
    }
}

#[tokio::test]
async fn a_password_that_a_server_quotes_is_left_out() {
    let (log, _listening) = Log::listen();
    for (password, line) in [
        ("s3cret-word", "ERR the proxy does not know HELLO 3 AUTH default s3cret-word SETNAME x"),
        ("s3cret-word", "ERR Syntax error in HELLO option 's3cret-word'"),
        ("s3cret-word", "S3CRET s3cret-word"),
        ("pw", "ERR no user has the password 'pw'"),
    ] {
        let fake = Fake::start().await;
        let url = fake.url().replace("://", &format!("://:{password}@"));
        fake.answer_with(line);
        let answered = fault(&patient().connect_lazy(&url).unwrap()).await;
        fake.greet_with(line);
        let greeted = fault(&patient().connect_lazy(&url).unwrap()).await;
        for text in [texts(&answered), texts(&greeted), log.lines()].concat() {
            assert!(!text.contains(password), "{text}");
        }
    }
}

#[tokio::test]
async fn a_finding_on_a_server_shows_what_it_says_of_itself_in_bounds() {
    let server = Server::start();
    let () = redis::cmd("SET")
        .arg(format!("tallygate:{}\u{1b}[2J", "x".repeat(5_000)))
        .arg("foreign")
        .query(&mut server.connection())
        .unwrap();
    let reports = server.limiter().await.inspect().await.unwrap();
    let findings: Vec<_> = reports[0].findings().iter().map(ToString::to_string).collect();
    assert!(findings.iter().any(|finding| finding.contains("tallygate:xxx")), "{findings:?}");
    assert!(findings.iter().all(|finding| finding.len() < 1_000 && !finding.contains('\u{1b}')), "{findings:?}");
}
