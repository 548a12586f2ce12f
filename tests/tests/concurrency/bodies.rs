//! Many tasks of a process that share a concurrency limit: no more bodies run than it allows, however they end. For
//! processes that share one, see `workers.rs`.

use std::panic::resume_unwind;
use std::time::Duration;

use tallygate::{Limiter, Rejection, Subject, rate_limit};
use tallygate_harness::bodies::Bodies;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::server::{Server, away, connected, patient};
use tallygate_harness::until::until_found;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const TASKS: u64 = 300;

/// What a body that fails returns.
#[derive(Debug)]
#[allow(dead_code, reason = "shown")]
enum Failed {
    Denied(Rejection),
    Body,
}

impl From<Rejection> for Failed {
    fn from(rejection: Rejection) -> Self {
        Self::Denied(rejection)
    }
}

/// The calls of a test.
#[derive(Clone)]
struct Calls {
    limiter: Limiter,
    /// That of the policy.
    limit: u64,
    /// How many of them this process may admit.
    part: u64,
    bodies: Bodies,
}

impl Calls {
    fn new(limiter: Limiter, limit: u64, part: u64) -> Self {
        Self { limiter, limit, part, bodies: Bodies::new() }
    }

    #[rate_limit(
        name = "concurrent",
        key = "all",
        concurrency(limit = self.limit, lease = "10m"),
        wait = "60s",
        limiter = self.limiter
    )]
    async fn run(&self, number: u64) -> Result<(), Failed> {
        let _running = self.bodies.begin();
        self.bodies.until_most(self.part).await;
        sleep(Duration::from_micros(number * 20 % 3_000)).await;
        match number % 7 {
            0 => Err(Failed::Body),
            // Without the message of a panic.
            1 => resume_unwind(Box::new("as some bodies do")),
            _ => Ok(()),
        }
    }

    /// Calls as often as that, some of them for so short a time that they are dropped: while they wait, or while they run.
    async fn run_each(self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            let calls = self.clone();
            let call = tokio::spawn(async move {
                match number % 5 {
                    0 => _ = timeout(Duration::from_micros(fastrand::u64(0..5_000)), calls.run(number)).await,
                    _ => {
                        if let Err(Failed::Denied(rejection)) = calls.run(number).await {
                            panic!("a call that waits long enough is admitted: {rejection}");
                        }
                    }
                }
            });
            // The bodies that panic do so without a message.
            if let Err(error) = call.await {
                assert!(error.is_panic() && number % 7 == 1, "{error}");
            }
        }
    }

    /// How many more calls this process may admit.
    async fn remaining(&self) -> u64 {
        let policy = Limiter::policy("concurrent").unwrap().with_counts([self.limit]);
        let decision = self.limiter.peek(&policy, &Subject::of("all")).await.unwrap();
        decision.report()[0].remaining()
    }
}

async fn no_more_bodies_run_than_the_limit(limiter: Limiter, limit: u64, part: u64) {
    let calls = Calls::new(limiter, limit, part);
    let turns = cases(5, 50);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(calls.clone().run_each(task..task + turns));
    }
    tasks.join_all().await;
    assert_eq!(calls.bodies.most(), part);
    until_found("nothing is running", async || calls.remaining().await == part).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_bodies_run_than_the_limit_in_memory() {
    no_more_bodies_run_than_the_limit(Limiter::in_memory(), 7, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_bodies_run_than_the_part_of_a_process_that_decides_alone() {
    no_more_bodies_run_than_the_limit(away(|builder| builder.processes(4)), 10, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_bodies_run_than_the_limit_on_a_server() {
    let server = Server::start();
    let limiter = connected(&patient().deadline(Duration::from_secs(5)), &server.url()).await;
    no_more_bodies_run_than_the_limit(limiter, 7, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_bodies_run_than_the_limit_in_a_cluster() {
    let cluster = Cluster::start();
    let limiter = connected(&patient().deadline(Duration::from_secs(5)), &cluster.url()).await;
    no_more_bodies_run_than_the_limit(limiter, 7, 7).await;
}
