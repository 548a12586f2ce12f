//! One of several processes that share a concurrency limit: many tasks do short work, and each takes a slot meanwhile,
//! of which there are as many as the limit. Says `over` if there was none, and else how much work was done, now and then.

#![allow(clippy::print_stdout, reason = "the tests read it")]

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::slots;
use tokio::time::sleep;

const TASKS: u64 = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (url, name) = arguments.next().zip(arguments.next()).ok_or("usage: worker URL NAME LIMIT LEASE_SECONDS")?;
    let mut number = || arguments.next().ok_or("a number is missing")?.parse::<u64>().map_err(Box::<dyn Error>::from);
    let (limit, lease) = (number()?, Duration::from_secs(number()?));
    let policy = Policy::builder("workers").rule(Rule::concurrency(limit, lease)).build()?;
    let limiter = Limiter::builder().deadline(Duration::from_secs(1)).connect(&url).await?;
    let done = Arc::new(AtomicU64::new(0));
    for task in 0..TASKS {
        tokio::spawn(work(limiter.clone(), policy.clone(), name.clone(), limit, task, Arc::clone(&done)));
    }
    loop {
        sleep(Duration::from_millis(20)).await;
        println!("{}", done.load(Ordering::Relaxed));
    }
}

async fn work(limiter: Limiter, policy: Policy, name: String, limit: u64, task: u64, done: Arc<AtomicU64>) {
    let subject = Subject::of("all");
    for turn in 0_u64.. {
        let waiting = limiter.check(&policy, &subject).wait(Duration::from_secs(60));
        // Some callers give up.
        let decided = match (task + turn) % 5 {
            0 => tokio::time::timeout(Duration::from_millis(3), waiting).await.ok(),
            _ => Some(waiting.await),
        };
        let Some(Ok(decision)) = decided else { continue };
        let Ok(permit) = decision.into_result() else { continue };
        let (name, done) = (name.clone(), Arc::clone(&done));
        let body = tokio::spawn(async move {
            let _permit = permit;
            let Some(_slot) = slots::take(&name, limit) else {
                println!("over");
                return;
            };
            sleep(Duration::from_micros(task * 20 % 3_000)).await;
            done.fetch_add(1, Ordering::Relaxed);
            // Some bodies panic.
            assert!(!(task + turn).is_multiple_of(7), "as some bodies do");
        });
        match (task + turn) % 11 {
            // Some are dropped.
            0 => body.abort(),
            _ => _ = body.await,
        }
    }
}
