//! A subscriber of the whole process that calls limited functions for whatever it is told.

use std::env;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tallygate::config::Policies;
use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::{Server, free_port};
use tokio::runtime::Runtime;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const HOUR: Duration = Duration::from_secs(3_600);
const LONG: Duration = Duration::from_secs(120);

/// Set in the process in which the subscriber is installed.
const INSIDE: &str = "TALLYGATE_TEST_SUBSCRIBER";

static TOLD: AtomicUsize = AtomicUsize::new(0);
static LIMITERS: OnceLock<[Limiter; 3]> = OnceLock::new();

#[rate_limit(key = "all", rule(count = 1, per = "1h"))]
fn installed() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(key = "all", rule(count = 1, per = "1h"), limiter = limiter)]
fn chosen(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

/// Keeps no line, and denies nearly each.
struct Hostile;

impl Hostile {
    fn told(metadata: &Metadata<'_>) {
        if metadata.target().starts_with("tallygate") || metadata.target().starts_with("observed") {
            TOLD.fetch_add(1, Ordering::Relaxed);
            _ = installed();
            LIMITERS.get().into_iter().flatten().for_each(|limiter| _ = chosen(limiter));
        }
    }
}

impl Subscriber for Hostile {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Self::told(span.metadata());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        _ = installed();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        Self::told(event.metadata());
    }

    fn enter(&self, _: &Id) {
        _ = installed();
    }

    fn exit(&self, _: &Id) {
        _ = installed();
    }

    fn try_close(&self, _: Id) -> bool {
        _ = installed();
        true
    }
}

/// Lets this limiter say what it can.
async fn use_everything(limiter: &Limiter, policy: &Policy) {
    let subject = Subject::of("s");
    for _ in 0..3 {
        _ = limiter.check(policy, &subject).await;
        _ = limiter.check(policy, &subject).wait(Duration::from_millis(1)).await;
        _ = limiter.check(policy, &subject).blocking_decide();
    }
    // A rule that the policy does not have.
    _ = limiter.override_policy("heard").text("#none = 0 per 1h").set().await;
    _ = limiter.override_policy("heard").text("5 per 1h").expires_in(Duration::from_millis(1)).set().await;
    _ = limiter.check(policy, &subject).await;
    _ = limiter.override_policy("heard").clear().await;
    let file = Policies::from_toml("[policy.heard]\nrules = [\"3 per 1h\"]\nplans.free = 3").unwrap();
    _ = limiter.apply(&file);
    _ = limiter.check(policy, &subject).await;
    _ = limiter.ping().await;
}

fn call_within_the_subscriber() {
    tracing::subscriber::set_global_default(Hostile).unwrap();
    tracing::info!("the first line of the program");
    let mut server = Server::start();
    let away = format!("redis://127.0.0.1:{}/", free_port());
    let open =
        |url: &str| Limiter::builder().deadline(Duration::from_secs(1)).denied_subjects(10).connect_lazy(url).unwrap();
    let limiters = LIMITERS.get_or_init(|| [Limiter::in_memory(), open(&server.url()), open(&away)]);
    let policy = Policy::builder("heard").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    Runtime::new().unwrap().block_on(async {
        for limiter in limiters {
            use_everything(limiter, &policy).await;
        }
        server.kill();
        use_everything(&limiters[1], &policy).await;
        server.restart();
        use_everything(&limiters[1], &policy).await;
    });
    assert!(TOLD.load(Ordering::Relaxed) > 20, "it was told of what happened");
}

#[test]
fn one_that_calls_limited_functions_neither_hangs_nor_overflows_a_stack() {
    const NAME: &str = "subscriber::one_that_calls_limited_functions_neither_hangs_nor_overflows_a_stack";
    if env::var_os(INSIDE).is_some() {
        return call_within_the_subscriber();
    }
    let mut process = Command::new(env::current_exe().unwrap());
    let mut process = process.args([NAME, "--exact", "--nocapture"]).env(INSIDE, "1").spawn().unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > LONG {
            process.kill().unwrap();
            panic!("the process hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "{status}");
}
