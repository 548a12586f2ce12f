//! What becomes of calls while Redis is away: they are rejected, decided by this process, or admitted.

mod allow;
mod bound;
mod cluster;
mod concurrency;
mod local;
mod pauses;
mod rules;
mod settings;
mod shown;
mod trials;

use std::sync::LazyLock;
use std::time::Duration;

use tallygate::{Check, DecidedBy, Decision, Denial, Limiter, OnOutage, Permit, Policy, PolicyBuilder, Rule, Subject};
use tallygate_harness::server::{Server, away, patient};
use tokio::time::{sleep, timeout};

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(20);

fn policy(rule: Rule) -> Policy {
    builder(rule).build().unwrap()
}

fn builder(rule: Rule) -> PolicyBuilder {
    Policy::builder("on.outage").rule(rule)
}

fn hourly(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn subject() -> &'static Subject {
    static SUBJECT: LazyLock<Subject> = LazyLock::new(|| Subject::of("s"));
    &SUBJECT
}

fn check<'a>(limiter: &'a Limiter, policy: &'a Policy) -> Check<'a> {
    limiter.check(policy, subject())
}

/// A limiter whose server is away.
fn limiter(on_outage: OnOutage) -> Limiter {
    away(|builder| builder.on_outage(on_outage))
}

/// A limiter whose server is away, and whose process decides as one of so many.
fn one_of(processes: u64) -> Limiter {
    away(|builder| builder.processes(processes))
}

async fn call(limiter: &Limiter, policy: &Policy) -> Decision {
    check(limiter, policy).await.expect("somebody decides")
}

async fn admitted(limiter: &Limiter, policy: &Policy) -> Permit {
    call(limiter, policy).await.into_result().expect("the call is admitted")
}

async fn denied(limiter: &Limiter, policy: &Policy) -> Denial {
    call(limiter, policy).await.into_result().expect_err("the call is denied")
}

/// How many calls are admitted until one is denied, all by the standby, while those before are running.
async fn room(limiter: &Limiter, policy: &Policy) -> u64 {
    let mut running = Vec::new();
    loop {
        let decision = call(limiter, policy).await;
        assert_eq!(decision.decided_by(), DecidedBy::Standby);
        match decision.into_result() {
            Ok(permit) => running.push(permit),
            Err(_) => return running.len() as u64,
        }
    }
}

/// A server and a limiter that uses it, for calls of any patience.
fn with_server(on_outage: OnOutage) -> (Server, Limiter) {
    let server = Server::start();
    let limiter = patient().on_outage(on_outage).connect_lazy(server.url()).unwrap();
    (server, limiter)
}

/// Peeks until that decides.
async fn until_decided_by(limiter: &Limiter, decided_by: DecidedBy) {
    let policy = Policy::builder("until").rule(hourly(1)).build().unwrap();
    let decided = async {
        while limiter.peek(&policy, subject()).await.unwrap().decided_by() != decided_by {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, decided).await.expect("the state of the server is noticed");
}
