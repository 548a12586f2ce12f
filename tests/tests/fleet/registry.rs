//! The list of policies in Redis: what processes write, and what tools make of it.

mod bans;
mod listing;
mod subjects;
mod tallies;
mod topologies;
mod trouble;
mod upkeep;

use std::collections::HashMap;
use std::time::Duration;

use tallygate::admin::{Registered, RegisteredPolicy};
use tallygate::{Limiter, Policy, PolicyBuilder, Rule, Subject};
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;

const HOUR: Duration = Duration::from_secs(3_600);
const KEY: &str = "tallygate:!policies";

/// Returns a limiter of each store, and the server of the second.
async fn each_store() -> ([Limiter; 2], Server) {
    let server = Server::start();
    ([Limiter::in_memory(), server.limiter().await], server)
}

/// Returns a limiter that lists its policies.
async fn listing_limiter(server: &Server) -> Limiter {
    connected(&patient().registry(true), &server.url()).await
}

fn hourly(name: &'static str, count: u64) -> Policy {
    hourly_builder(name, count).build().unwrap()
}

fn hourly_builder(name: &'static str, count: u64) -> PolicyBuilder {
    Policy::builder(name).rule(Rule::sliding_window(count, HOUR))
}

async fn call(limiter: &Limiter, policy: &Policy) -> bool {
    limiter.check(policy, &Subject::of("s")).await.unwrap().is_allowed()
}

async fn read(limiter: &Limiter) -> Registered {
    limiter.registered_policies().await.unwrap()
}

/// Waits until a policy of that name is listed for which this holds.
async fn until_listed(limiter: &Limiter, name: &str, holds: impl Fn(&RegisteredPolicy) -> bool) -> RegisteredPolicy {
    let mut found = None;
    until_found(&format!("`{name}` is listed"), async || {
        found = read(limiter).await.find(name).filter(|policy| holds(policy)).cloned();
        found.is_some()
    })
    .await;
    found.unwrap()
}

/// Waits until these rules are listed under that name, while calls go on.
async fn until_rules(limiter: &Limiter, policy: &Policy, rules: &str) {
    until_found(&format!("`{rules}` is listed"), async || {
        call(limiter, policy).await;
        read(limiter).await.find(policy.name()).is_some_and(|listed| listed.rules_text() == rules)
    })
    .await;
}

/// The hash as an operator sees it.
fn stored(server: &Server) -> HashMap<String, String> {
    server.ask(&format!("HGETALL {KEY}"))
}

/// Stores an entry as another process might.
fn store(server: &Server, field: &str, text: &str) {
    let () = redis::cmd("HSET").arg(KEY).arg(field).arg(text).query(&mut server.connection()).unwrap();
}
