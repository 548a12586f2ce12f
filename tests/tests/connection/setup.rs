//! A wrong set-up is an error that names the setting, and shows no password.

use std::net::TcpListener;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tallygate::{Error, ErrorKind, Limiter, LimiterBuilder, OnOutage, Policy, Rule, Subject};
use tallygate_harness::clustered::Clustered;
use tallygate_harness::fake::Fake;
use tallygate_harness::load::admitted_at_once;
use tallygate_harness::log::Log;
use tallygate_harness::server::{self, Server, connected, free_port, patient};
use tallygate_harness::until::until;

const PASSWORD: &str = "s3cret-and-odd";

async fn refused(url: &str) -> String {
    refusal(Limiter::connect(url).await)
}

fn refused_setting(builder: LimiterBuilder) -> String {
    refusal(builder.build_in_memory())
}

fn refusal(outcome: Result<Limiter, Error>) -> String {
    let error = outcome.expect_err("the set-up is wrong");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    error.to_string()
}

fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is missing in: {text}");
    }
}

#[tokio::test]
async fn a_url_that_names_no_known_storage_is_refused() {
    assert_says(&refused("reddis://x").await, &["`url`", "unknown scheme `reddis`", "redis://"]);
    assert_says(&refused("127.0.0.1:6379").await, &["`url`", "no scheme", "redis://"]);
    assert_says(&refused("").await, &["`url`", "redis://"]);
    assert_says(&refused("memory://x").await, &["`url`", "memory://"]);
    assert_says(&refused(&format!("reddis://me:{PASSWORD}@x")).await, &["`url`", "reddis"]);
}

#[tokio::test]
async fn settings_are_checked_wherever_the_tallies_are() {
    let mistaken = || Limiter::builder().deadline(Duration::ZERO);
    assert_says(&refusal(mistaken().build_in_memory()), &["`deadline`"]);
    assert_says(&refusal(mistaken().connect("memory://").await), &["`deadline`"]);
    assert_says(&refusal(mistaken().connect_lazy("redis://127.0.0.1/")), &["`deadline`"]);
}

#[tokio::test]
async fn a_redis_url_that_cannot_be_read_is_refused() {
    for url in ["redis://", "redis://:0:1/", "redis://127.0.0.1:70000/", "redis://127.0.0.1/zero"] {
        assert_says(&refused(url).await, &["`url`"]);
    }
    assert_says(&refused(&format!("redis://me:{PASSWORD}@127.0.0.1:70000/")).await, &["`url`"]);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_an_error_at_start_up() {
    let url = format!("redis://127.0.0.1:{}/", free_port());
    let error = Limiter::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert_says(&error.to_string(), &["`url`", "refused"]);
    assert_says(&refused(&format!("redis://:{PASSWORD}@127.0.0.1:{}/", free_port())).await, &["`url`", "refused"]);
    assert_says(&refused("redis+unix:///no/such/socket").await, &["`url`"]);
}

#[tokio::test]
async fn a_server_that_never_answers_is_an_error_at_start_up() {
    // The system accepts connections on its behalf.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://:{PASSWORD}@{}/", deaf.local_addr().unwrap());
    let error = refused(&url).await;
    assert_says(&error, &["`url`"]);
    // A busy machine may find that the attempt and the wait for it are over at once.
    assert!(error.contains("no connection within") || error.contains("no answer within"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_an_error_that_does_not_show_it() {
    let server = Server::start_with(&["--requirepass", "the-right-one"]);
    let address = format!("127.0.0.1:{}", server.port());
    let (log, _guard) = Log::listen();
    for login in [format!(":{PASSWORD}@"), format!("default:{PASSWORD}@"), format!("nobody:{PASSWORD}@")] {
        let error = server::refused(&patient(), &format!("redis://{login}{address}/")).await.to_string();
        assert_says(&error, &["`url`", "password"]);
    }
    let error = server::refused(&patient(), &format!("redis://{address}/")).await.to_string();
    assert_says(&error, &["`url`", "password"]);
    let limiter = connected(&patient(), &format!("redis://:the-right-one@{address}/")).await;
    assert!(!format!("{limiter:?}").contains("the-right-one"));
    let logged = log.lines().join("\n");
    assert!(!logged.is_empty() && !logged.contains(PASSWORD) && !logged.contains("the-right-one"), "{logged}");
}

/// Whether this limiter can decide calls of its policies.
async fn decides(limiter: &Limiter) -> bool {
    let hour = Duration::from_secs(3_600);
    let rules = [Rule::sliding_window(9, hour), Rule::fixed_window(9, hour)];
    let policies = rules.map(|rule| Policy::builder("p").rule(rule).build().unwrap());
    let mut decides = true;
    for policy in policies.iter().chain(&policies) {
        decides &= limiter.check(policy, &Subject::everyone()).await.is_ok();
    }
    decides
}

#[tokio::test]
async fn a_limiter_is_ready_exactly_if_it_decides_calls() {
    let server = Server::start();
    server.ask::<()>("ACL SETUSER ready on nopass ~tallygate:* +@all");
    let url = format!("redis://ready:any@127.0.0.1:{}/", server.port());
    let limiter = connected(&patient(), &url).await;
    assert!(limiter.ping().await.is_ok() && decides(&limiter).await);
    for command in
        ["evalsha", "eval", "time", "set", "append", "setrange", "getrange", "strlen", "pexpire", "pttl", "unlink"]
    {
        server.ask::<()>(&format!("ACL SETUSER ready -{command}"));
        // They are sent by text again.
        server.ask::<()>("SCRIPT FLUSH");
        server.ask::<()>("FLUSHALL");
        let (ping, decides) = (limiter.ping().await, decides(&limiter).await);
        assert!(ping.is_err() || decides, "without {command}, it is ready and decides nothing");
        let connected = patient().connect(&url).await;
        assert_eq!(connected.is_ok(), ping.is_ok(), "{command}");
        if let Err(error) = ping {
            assert_says(&error.to_string(), &["permissions"]);
        }
        server.ask::<()>(&format!("ACL SETUSER ready +{command}"));
    }
    server.ask::<()>("ACL SETUSER ready resetkeys ~other:*");
    assert!(limiter.ping().await.is_err() && patient().connect(&url).await.is_err());
    server.ask::<()>("ACL SETUSER ready ~tallygate:*");
    server.ask::<()>("CONFIG SET maxmemory 1");
    let full = limiter.ping().await.unwrap_err();
    assert_says(&full.to_string(), &["maxmemory"]);
    assert!(!decides(&limiter).await && patient().connect(&url).await.is_err());
    server.ask::<()>("CONFIG SET maxmemory 0");
    assert!(limiter.ping().await.is_ok() && decides(&limiter).await);
}

#[tokio::test]
async fn a_server_with_a_renamed_command_is_refused_at_start_up() {
    for command in ["EVALSHA", "EVAL", "TIME", "UNLINK"] {
        let server = Server::start_with(&["--rename-command", command, ""]);
        assert_says(&refused(&server.url()).await, &["`url`", "renamed"]);
    }
}

#[tokio::test]
async fn a_server_that_refuses_time_in_scripts_is_refused_at_start_up_and_decides_nothing() {
    const IN_REDIS_6: &str =
        "Error running script (call to f_11631ba05bccc1029901576bbd2b147c272a1abc): @user_script:1: ";
    for refusal in [
        "This Redis command is not allowed from script script: 11631ba0, on @user_script:1.",
        &format!("{IN_REDIS_6}@user_script: 1: This Redis command is not allowed from scripts"),
        &format!("{IN_REDIS_6}@user_script: 1: Write commands not allowed after non deterministic commands."),
    ] {
        let fake = Fake::start().await;
        fake.reply_with(":0\r\n");
        fake.reply_to("EVALSHA", "-NOSCRIPT No matching script.\r\n");
        fake.reply_to("EVAL", &format!("-ERR {refusal}\r\n"));
        assert_says(&refused(&fake.url()).await, &["`url`", "`TIME`", "managed servers"]);
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        assert_says(&limiter.ping().await.unwrap_err().to_string(), &["`TIME`", "managed servers"]);
        for on_outage in [OnOutage::Local, OnOutage::Allow, OnOutage::Deny] {
            let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60)));
            let policy = policy.on_outage(on_outage).build().unwrap();
            let error = limiter.check(&policy, &Subject::of("s")).await.unwrap_err();
            assert_says(&error.to_string(), &["`TIME`", "managed servers"]);
        }
    }
}

#[tokio::test]
async fn what_a_limiter_tries_to_be_ready_counts_nothing_and_is_removed() {
    let server = Server::start();
    let limiter = Limiter::builder().registry(false).connect(server.url()).await.unwrap();
    for _ in 0..5 {
        limiter.ping().await.unwrap();
    }
    until("nothing is left", || server.ask::<usize>("DBSIZE") == 0).await;
    assert!(Limiter::policy("rehearsal").is_none());
}

/// A server answers a command that it does not know with what was sent.
#[tokio::test]
async fn an_error_that_quotes_what_was_sent_shows_neither_password_nor_subject() {
    const PHONE: &str = "13800000000";
    let (log, _guard) = Log::listen();

    let server = Server::start_with(&["--requirepass", PASSWORD, "--rename-command", "HELLO", ""]);
    let url = format!("redis://:{PASSWORD}@127.0.0.1:{}/", server.port());
    // Some servers ask for the password before they say that they do not know the command.
    assert_says(&refused(&url).await, &["`url`"]);

    let server = Server::start_with(&["--rename-command", "EVALSHA", ""]);
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    let error = limiter.check(&policy, &Subject::of(PHONE)).await.unwrap_err();
    assert_says(&error.to_string(), &["EVALSHA"]);
    let mut shown = log.lines();
    let mut cause = Some(&error as &dyn std::error::Error);
    while let Some(error) = cause {
        shown.push(format!("{error} {error:?}"));
        cause = error.source();
    }
    assert!(shown.iter().all(|text| !text.contains(PASSWORD) && !text.contains(PHONE)), "{shown:?}");
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_an_error_at_start_up() {
    let server = Server::start();
    assert_says(&refused(&format!("redis://127.0.0.1:{}/99", server.port())).await, &["`url`"]);
}

#[test]
fn a_prefix_is_short_plain_and_not_empty() {
    let with = |prefix: &str| Limiter::builder().prefix(prefix);
    assert_says(&refused_setting(with("")), &["`prefix`", "empty", "prefix(\"shop\")"]);
    assert_says(&refused_setting(with(&"p".repeat(26))), &["`prefix`", "at most 25"]);
    for odd in ["shop:eu", "{shop}", "shop 1", "shöp", "shop%", "shop!", "shop\n"] {
        assert_says(&refused_setting(with(odd)), &["`prefix`", "letters, digits"]);
    }
    for plain in ["s", "Shop.eu_1@a+b~c-d", &"p".repeat(25)] {
        assert!(with(plain).build_in_memory().is_ok(), "{plain}");
    }
}

#[test]
fn a_deadline_of_no_time_or_of_no_end_is_refused() {
    let with = |deadline| Limiter::builder().deadline(deadline);
    assert_says(&refused_setting(with(Duration::ZERO)), &["`deadline`", "longer than zero", "from_millis"]);
    assert_says(&refused_setting(with(Duration::MAX)), &["`deadline`", "at most an hour", "from_millis"]);
    assert!(with(Duration::from_secs(3_600)).build_in_memory().is_ok());
}

#[test]
fn asking_redis_without_a_runtime_is_an_error_that_says_so() {
    for scheme in ["redis", "redis+cluster"] {
        let url = format!("{scheme}://127.0.0.1:{}/", free_port());
        let limiter = Limiter::builder().connect_lazy(&url).unwrap();
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
        let subject = Subject::of("s");
        let decision = limiter.check(&policy, &subject).into_future().now_or_never().unwrap();
        assert_says(&decision.unwrap_err().to_string(), &["needs a tokio runtime", "blocking_decide"]);
        let reset = limiter.check(&policy, &subject).reset().now_or_never().unwrap();
        assert_says(&reset.unwrap_err().to_string(), &["needs a tokio runtime", "blocking_decide"]);
        let connected = Limiter::connect(&url).now_or_never().unwrap();
        assert_says(&connected.unwrap_err().to_string(), &["needs a tokio runtime", "blocking_decide"]);
    }
}

#[tokio::test]
async fn limiters_of_different_prefixes_share_a_server_and_no_tally() {
    let server = Server::start();
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    for prefix in ["shop", "bank"] {
        let builder = Limiter::builder().prefix(prefix).deadline(Duration::from_secs(30)).registry(false);
        let limiter = builder.connect(server.url()).await.unwrap();
        assert!(limiter.check(&policy, &Subject::of("s")).await.unwrap().is_allowed());
    }
    let mut keys: Vec<String> = server.ask("KEYS *");
    keys.sort();
    assert_eq!(keys, ["bank:p/w1m:s", "shop:p/w1m:s"]);
}

/// No other test in this process uses the installed limiter.
#[tokio::test]
async fn without_an_installed_limiter_memory_decides_and_says_so_once() {
    let (log, _guard) = Log::listen();
    let policy = Policy::builder("p").rule(Rule::sliding_window(5, Duration::from_secs(3_600))).build().unwrap();
    let subject = Subject::of("s");
    assert_eq!(admitted_at_once(Limiter::installed(), &policy, &subject, 1).await, 5);
    assert!(!Limiter::installed().check(&policy, &subject).await.unwrap().is_allowed());
    let said: Vec<_> = log.lines().into_iter().filter(|line| line.contains("no limiter is installed")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_says(&said[0], &["INFO", "this process only", "Limiter::connect(url).await?.install()?"]);

    Limiter::in_memory().install().unwrap();
    assert!(Limiter::installed().check(&policy, &subject).await.unwrap().is_allowed(), "the installed one decides now");
    let error = Limiter::in_memory().install().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyInstalled);
    assert_says(&error.to_string(), &["installed already", "once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_a_cluster_that_looks_like_one_server_is_asked_slot_by_slot_and_no_caller_sees_an_error() {
    let server = Server::start();
    let proxy = Clustered::start(server.port()).await;
    let limiter = connected(&patient(), &proxy.url()).await;
    let hour = Duration::from_secs(3_600);
    let rules = [Rule::sliding_window(2, hour), Rule::fixed_window(2, hour)];
    for (name, rule) in ["windows", "all"].into_iter().zip(rules) {
        let policy = Policy::builder(name).rule(rule).build().unwrap();
        for _ in 0..3 {
            let subjects: Vec<_> = (0..100).map(Subject::of).collect();
            let calls = subjects.iter().map(|subject| limiter.check(&policy, subject).into_future());
            assert!(join_all(calls).await.iter().all(Result::is_ok));
        }
        let stored = (0..100).map(Subject::of);
        for subject in stored {
            let decision = limiter.check(&policy, &subject).peek().report().await.unwrap();
            assert_eq!(decision.report()[0].remaining(), 0, "each call is counted once");
        }
    }
    assert!(proxy.refused() > 0, "calls were gathered at first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_several_subjects_is_decided_in_parts_behind_such_a_proxy() {
    let server = Server::start();
    let proxy = Clustered::start(server.port()).await;
    let hour = Duration::from_secs(3_600);
    let both = Policy::builder("both").rule(Rule::sliding_window(2, hour)).rule_on("b", Rule::fixed_window(9, hour));
    let both = both.on_outage(OnOutage::Allow).build().unwrap();
    let leases = Policy::builder("leases").rule(Rule::concurrency(1, hour)).rule_on("b", Rule::concurrency(1, hour));
    let (leases, one) = (leases.build().unwrap(), Policy::builder("one").rule(Rule::sliding_window(1, hour)));
    let (one, shared) = (one.build().unwrap(), Subject::of("shared"));
    let subjects: Vec<_> = (0..50).map(Subject::of).collect();

    // The first answers of this kind are to calls of all policies at once.
    let limiter = connected(&patient(), &proxy.url()).await;
    let calls = subjects.iter().map(async |subject| {
        let several = limiter.check(&both, subject).subject("b", &shared).refundable().await;
        let single = limiter.check(&one, subject).await;
        (several.expect("it is decided").into_result().ok(), single.expect("it is decided").is_allowed())
    });
    let decided = join_all(calls).await;
    assert!(decided.iter().all(|(_, single)| *single));
    let mut permits: Vec<_> = decided.into_iter().filter_map(|(permit, _)| permit).collect();
    assert_eq!(permits.len(), 9, "the shared subject admits nine");
    assert!(permits.pop().unwrap().refund().await.unwrap());
    let left = async || {
        let peeked = limiter.check(&both, &Subject::of("new")).subject("b", &shared).peek().report().await.unwrap();
        peeked.report().iter().map(tallygate::RuleStatus::remaining).collect::<Vec<_>>()
    };
    assert_eq!(left().await, [2, 1]);

    // Each kind of call is the first of its limiter.
    let first = async || connected(&patient(), &proxy.url()).await;
    first().await.check(&both, &Subject::of("new")).subject("b", &shared).reset_all().await.unwrap();
    assert_eq!(left().await, [2, 9]);
    let subject = Subject::of("held");
    let limiter = first().await;
    let check = || limiter.check(&leases, &subject).subject("b", &shared);
    let held = check().await.unwrap().into_result().expect("there is room");
    assert!(!check().await.unwrap().is_allowed() && !check().peek().await.unwrap().is_allowed());
    drop(held);
    assert!(check().await.unwrap().is_allowed(), "what has ended is given back before");
    assert!(proxy.refused() > 0);
}
