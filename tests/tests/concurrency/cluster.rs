//! Concurrency limits whose subjects are in several slots.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tallygate::{Decision, Limiter, Policy, Rule, Subject};
use tallygate_harness::bodies::Bodies;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::{connected, patient};
use tallygate_harness::until::until_found;
use tokio::sync::Barrier;
use tokio::task::{JoinSet, yield_now};

const LEASE: Duration = Duration::from_secs(600);
const CALLERS: usize = 16;
/// As many of each caller may be running.
const OWN: u64 = 2;
/// As many of the network.
const SHARED: u64 = 7;
/// In so many rounds, calls lose a race for sure.
const ROUNDS: usize = 1_000;

/// Calls of several callers from one network. Its leases are in another slot than those of most callers.
#[derive(Clone)]
struct Network {
    limiter: Limiter,
    policy: Policy,
    shared: Subject,
    bodies: Bodies,
    own_bodies: Arc<HashMap<String, Bodies>>,
}

impl Network {
    async fn of(cluster: &Cluster, prefix: &str) -> Self {
        let limiter = connected(&patient().prefix(prefix), &cluster.url()).await;
        let builder = Policy::builder("export").rule(Rule::concurrency(OWN, LEASE));
        let policy = builder.rule_on("network", Rule::concurrency(SHARED, LEASE)).build().unwrap();
        let own_bodies = callers().map(|caller| (caller.to_string(), Bodies::new())).collect();
        let shared = Subject::of("10.0.0.0/24");
        Self { limiter, policy, shared, bodies: Bodies::new(), own_bodies: Arc::new(own_bodies) }
    }

    async fn decide(&self, caller: &Subject) -> Decision {
        self.limiter.check(&self.policy, caller).subject("network", &self.shared).await.unwrap()
    }

    /// Calls that often, and returns how many calls were admitted.
    async fn call(&self, caller: &Subject, times: usize) -> usize {
        let mut admitted = 0;
        for _ in 0..times {
            if let Decision::Allowed(permit) = self.decide(caller).await {
                let running = [self.bodies.begin(), self.own_bodies[&caller.to_string()].begin()];
                admitted += 1;
                // Others ask meanwhile.
                for _ in 0..10 {
                    yield_now().await;
                }
                drop(running);
                drop(permit);
            }
        }
        admitted
    }
}

fn callers() -> impl Iterator<Item = Subject> {
    (0..CALLERS).map(|value| Subject::of("caller").and(value))
}

/// How many leases were given back on any node.
fn given_back(cluster: &Cluster) -> usize {
    cluster.masters().iter().map(|master| master.calls("zrem")).sum()
}

/// The keys of all leases that are left.
fn left(cluster: &Cluster) -> Vec<String> {
    cluster.masters().iter().flat_map(|master| master.ask::<Vec<String>>("KEYS *leases*")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_bodies_run_than_each_subject_allows_and_a_call_that_loses_a_race_keeps_no_lease() {
    let cluster = Cluster::start();
    let network = Network::of(&cluster, "tallygate").await;
    let mut admitted = 0;
    for _ in 0..ROUNDS {
        let together = Arc::new(Barrier::new(4 * CALLERS));
        let mut tasks = JoinSet::new();
        for caller in callers().flat_map(|caller| [0; 4].map(|_| caller.clone())) {
            let (network, together) = (network.clone(), Arc::clone(&together));
            tasks.spawn(async move {
                together.wait().await;
                network.call(&caller, 5).await
            });
        }
        admitted += tasks.join_all().await.into_iter().sum::<usize>();
        until_found("no lease is left in any node", async || left(&cluster).is_empty()).await;
        // A call that was admitted gives two leases back; one that was admitted by one subject alone gives one back.
        if given_back(&cluster) >= 2 * admitted + 20 {
            break;
        }
    }
    assert!(admitted > 0);
    assert!(given_back(&cluster) > 2 * admitted, "no call has lost a race");
    assert!(network.bodies.most() <= SHARED, "{:?}", network.bodies);
    for own in network.own_bodies.values() {
        assert!(own.most() <= OWN, "{own:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_bodies_run_as_each_subject_allows() {
    let cluster = Cluster::shared();
    let network = Network::of(&cluster, "under-way").await;
    let mut permits = Vec::new();
    for caller in callers().take(4) {
        for _ in 0..=OWN {
            permits.extend(network.decide(&caller).await.into_result().ok());
        }
    }
    // Each of three callers has two, and the last one has what is left of the network.
    assert_eq!(permits.len() as u64, SHARED);
    drop(permits);
    let remaining = async || {
        let mut remaining = Vec::new();
        for caller in callers().take(4) {
            let peek = network.limiter.peek(&network.policy, &caller).subject("network", &network.shared);
            let decision = peek.await.unwrap();
            remaining.push([0, 1].map(|rule| decision.report()[rule].remaining()));
        }
        remaining
    };
    until_found("all leases were given back", async || remaining().await == [[OWN, SHARED]; 4]).await;
}
