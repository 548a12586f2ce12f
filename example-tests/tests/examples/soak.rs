//! All examples at once on a Redis that fails again and again: for some seconds, and by `cargo xtask soak --examples` for
//! minutes.
//!
//! It prints how calls were answered. It fails if a process crashes, grows or does not recover, or if an answer is none that
//! a client should see.

#![allow(clippy::print_stdout, reason = "a person reads it")]

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use escargot::CargoRun;
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::until_found;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::built;
use crate::process::Service;
use crate::tonic::{client, code};

/// Says for how long, in minutes.
const MINUTES: &str = "TALLYGATE_SOAK_MINUTES";

/// As long among the other tests.
const SHORT: f64 = 0.1;

/// The services, and how many clients each has.
const SERVICES: [&str; 5] = ["service-example", "gateway-example", "axum-example", "actix-example", "tonic-example"];
const CLIENTS: usize = 8;

/// The examples that run to their end.
const PROGRAMS: [&str; 7] = ["quickstart", "login", "form", "lottery", "quota", "simulation", "support"];

/// What clients may be answered: a wrong password, a duplicate, a limit, and that Redis is away.
const EXPECTED: [&str; 10] =
    ["200", "401", "409", "429", "503", "Ok", "ResourceExhausted", "Unavailable", ENDED, FAILED];
const ENDED: &str = "ended";
const FAILED: &str = "ended with an error";

/// What memory may grow by that is no leak: allocators keep pieces.
const SLACK_KIB: u64 = 16 * 1024;

/// How often each example has answered how.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<BTreeMap<(&'static str, String), u64>>>);

#[tokio::test(flavor = "multi_thread")]
async fn no_example_crashes_or_grows_while_redis_fails_again_and_again() {
    let minutes = env::var(MINUTES).map_or(SHORT, |minutes| minutes.parse().expect("a number of minutes"));
    let time = Duration::from_secs_f64(60.0 * minutes);
    let mut redis = Redis::start();
    let proxy = Proxy::start(redis.port()).await;
    let url = proxy.url();
    let variables = [("TALLYGATE_URL", &*url), ("TRUSTED_PROXIES", "127.0.0.0/8")];
    let services = SERVICES.map(|name| (name, Arc::new(Service::start(&built::service(name), &variables))));
    let (answers, (over, is_over)) = (Answers::default(), watch::channel(false));
    let mut callers = JoinSet::new();
    for (name, service) in services.iter().cycle().take(CLIENTS * SERVICES.len()) {
        callers.spawn(call(name, Arc::clone(service), answers.clone(), is_over.clone()));
    }
    for name in PROGRAMS {
        callers.spawn(run(name, Arc::new(built::program(name)), url.clone(), answers.clone(), is_over.clone()));
    }
    // In the first part, everything comes to its size.
    disturb(&mut redis, &proxy, time / 3).await;
    let before = services.each_ref().map(|(_, service)| service.resident_kib());
    disturb(&mut redis, &proxy, time * 2 / 3).await;
    let after = services.each_ref().map(|(_, service)| service.resident_kib());
    over.send_replace(true);
    callers.join_all().await;
    let unexpected = answers.print();
    for ((name, _), (before, after)) in services.iter().zip(before.into_iter().zip(after)) {
        println!("{name}: from {before} to {after} KiB resident");
        assert!(0 < after && after < before + SLACK_KIB, "{name} grows, or has crashed");
    }
    assert_eq!(unexpected, [""; 0], "a client should not see that");
    for (name, service) in &services {
        let is_well = async || !["503", "Unavailable"].contains(&&*ask(name, service).await);
        until_found("each service recovers", is_well).await;
    }
}

impl Answers {
    fn count(&self, name: &'static str, answer: String) {
        *self.0.lock().unwrap().entry((name, answer)).or_default() += 1;
    }

    /// Prints all, and returns those that are not expected.
    fn print(&self) -> Vec<String> {
        let answers = self.0.lock().unwrap();
        answers.iter().for_each(|((name, answer), number)| println!("{name}: {number} × {answer}"));
        answers.keys().map(|(_, answer)| answer.clone()).filter(|answer| !EXPECTED.contains(&&**answer)).collect()
    }
}

/// Makes call after call to a service.
async fn call(name: &'static str, service: Arc<Service>, answers: Answers, is_over: watch::Receiver<bool>) {
    while !*is_over.borrow() {
        answers.count(name, ask(name, &service).await);
        sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a program again and again.
async fn run(
    name: &'static str,
    example: Arc<CargoRun>,
    url: String,
    answers: Answers,
    is_over: watch::Receiver<bool>,
) {
    while !*is_over.borrow() {
        let (example, url) = (Arc::clone(&example), url.clone());
        let output = spawn_blocking(move || example.command().env("TALLYGATE_URL", url).output());
        let output = output.await.unwrap().expect("the example starts");
        let mistake = String::from_utf8_lossy(&output.stderr).into_owned();
        // A panic ends a program with another code.
        answers.count(
            name,
            match output.status.code() {
                Some(0) => ENDED.to_owned(),
                Some(1) if mistake.starts_with("Error: ") => FAILED.to_owned(),
                _ => format!("{}: {mistake}", output.status),
            },
        );
    }
}

/// Makes a call of any kind, and returns how it was answered.
async fn ask(name: &str, service: &Service) -> String {
    if name == "tonic-example" {
        let answer = code(&mut client(service), &email()).await;
        return answer.map_or_else(|status| format!("{:?}", status.code()), |_| "Ok".to_owned());
    }
    match request(name, service).send().await {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) => format!("{error:?}"),
    }
}

fn request(name: &str, service: &Service) -> RequestBuilder {
    let post = |path| service.request(Method::POST, path);
    let password = if fastrand::bool() { "correct horse" } else { "123456" };
    let user = || fastrand::u8(..).to_string();
    let request = match (name, fastrand::u8(..7)) {
        ("axum-example" | "actix-example", 0) => service.get("/"),
        // Only its head is read.
        ("gateway-example", _) => {
            let key = ["sk-alice", "sk-bob", "sk-carol", "sk-dave"][fastrand::usize(..4)];
            post("/v1/chat/completions").bearer_auth(key).json(&json!({ "messages": [{ "content": "a story" }] }))
        }
        ("service-example", 0) => service.get("/report"),
        ("service-example", 1) => service.get("/search"),
        ("service-example", 2) => post("/lottery").header("x-user", user()),
        ("service-example", 3) => post("/contacts").header("x-user", user()).body("carol@example.org"),
        ("service-example", 4) => post("/login").json(&json!({ "user": user(), "password": password })),
        // Only its head is read.
        ("service-example", 5) => {
            post("/answers").header("x-user", user()).json(&json!({ "text": "a story", "longest": 100 }))
        }
        _ => post("/codes").json(&json!({ "email": email() })),
    };
    request.header("x-forwarded-for", format!("198.51.100.{}", fastrand::u8(..)))
}

fn email() -> String {
    format!("{}@example.org", fastrand::u32(..10_000))
}

/// Disturbs Redis and the connections for that long, and leaves them well.
async fn disturb(redis: &mut Redis, proxy: &Proxy, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        match fastrand::u8(..8) {
            0 => proxy.cut(),
            1 => proxy.lose_replies(),
            2 => proxy.cut_replies(),
            3 => redis.ask::<()>("SCRIPT FLUSH"),
            4 => {
                redis.pause();
                pass(50..3_000).await;
                redis.resume();
            }
            5 => {
                redis.kill();
                pass(0..3_000).await;
                redis.restart();
            }
            _ => {}
        }
        pass(500..3_000).await;
    }
}

async fn pass(milliseconds: std::ops::Range<u64>) {
    sleep(Duration::from_millis(fastrand::u64(milliseconds))).await;
}
