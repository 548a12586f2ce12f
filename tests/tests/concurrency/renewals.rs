//! Renewals of leases that come late or not at all.

use std::time::Duration;

use tallygate::{Limiter, Permit, Policy, Rule, Subject};
use tallygate_harness::clocked::Clocked;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{connected, free_port, patient};
use tallygate_harness::until::until_found;
use tokio::runtime::{Builder, Runtime};

const KEY: &str = "tallygate:export/leases:alice";
const LEASE: Duration = Duration::from_secs(600);

/// Longer than a renewal may arrive after it was sent: two deadlines.
const LATEST: Duration = Duration::from_secs(61);

/// A server with a limiter that reaches it by a proxy, and one that reaches it directly: two processes.
struct Two {
    clocked: Clocked,
    proxy: Proxy,
    by_proxy: Limiter,
    direct: Limiter,
    policy: Policy,
}

impl Two {
    async fn start() -> Self {
        let clocked = Clocked::start();
        let proxy = Proxy::start(clocked.server().port()).await;
        let by_proxy = connected(&patient().clock(clocked.clock()), &proxy.url()).await;
        let direct = clocked.limiter().await;
        let policy = Policy::builder("export").rule(Rule::concurrency(1, LEASE)).build().unwrap();
        Self { clocked, proxy, by_proxy, direct, policy }
    }

    async fn permit(&self, limiter: &Limiter) -> Permit {
        let decision = limiter.check(&self.policy, &Subject::of("alice")).await.expect("redis answers");
        decision.into_result().expect("there is room")
    }

    async fn is_allowed(&self) -> bool {
        self.direct.peek(&self.policy, &Subject::of("alice")).await.expect("redis answers").is_allowed()
    }

    /// The ends of all leases, in microseconds, the first one first.
    fn ends_us(&self) -> Vec<u64> {
        let pairs: Vec<(redis::Value, String)> = self.clocked.server().ask(&format!("ZRANGE {KEY} 0 -1 WITHSCORES"));
        pairs.into_iter().map(|(_, ends_us)| ends_us.parse().unwrap()).collect()
    }

    fn full_lease_us(&self) -> u64 {
        self.clocked.now_us() + 600_000_000
    }

    /// Lets half of the lease pass, and awaits the renewal.
    async fn renewed(&self) {
        self.clocked.advance(LEASE / 2);
        let expected = [self.full_lease_us()];
        until_found("the lease was renewed", async || self.ends_us() == expected).await;
    }

    async fn until_reached(&self) {
        until_found("the server is reached again", async || self.by_proxy.ping().await.is_ok()).await;
    }

    /// Lets a little time pass again and again until there are no leases.
    async fn until_given_back(&self, step: Duration) {
        let given_back = async || {
            self.clocked.advance(step);
            self.ends_us().is_empty()
        };
        until_found("the lease was given back", given_back).await;
    }
}

#[tokio::test]
async fn a_renewal_that_arrives_after_the_lease_was_given_back_leaves_none_behind() {
    let two = Two::start().await;
    let permit = two.permit(&two.by_proxy).await;
    // From now on the server knows the script.
    two.renewed().await;
    two.proxy.hold_script();
    two.clocked.advance(LEASE / 2);
    until_found("the renewal is held back", async || two.proxy.held() == 1).await;
    let held_end_us = two.full_lease_us();
    two.until_reached().await;
    drop(permit);
    two.until_given_back(Duration::ZERO).await;
    two.proxy.deliver();
    until_found("the renewal arrives", async || two.ends_us() == [held_end_us]).await;
    assert!(!two.is_allowed().await);
    two.clocked.advance(LATEST);
    two.until_given_back(Duration::from_millis(100)).await;
    assert!(two.clocked.now_us() < held_end_us, "it did not just end");
    assert!(two.is_allowed().await);
}

#[tokio::test]
async fn a_call_without_renewals_makes_room_for_another_and_counts_again_with_them() {
    let two = Two::start().await;
    let cut_off = two.permit(&two.by_proxy).await;
    two.proxy.point_to(free_port());
    two.proxy.cut();
    two.clocked.advance(LEASE.checked_sub(Duration::from_micros(1)).unwrap());
    assert!(!two.is_allowed().await);
    two.clocked.advance(Duration::from_micros(1));
    let other = two.permit(&two.direct).await;
    assert_eq!(two.ends_us(), [two.full_lease_us()], "the lease of the first one has ended");
    assert!(!two.is_allowed().await);

    two.proxy.point_to(two.clocked.server().port());
    two.until_reached().await;
    let renewed = async || {
        two.clocked.advance(LEASE / 100);
        two.ends_us().len() == 2
    };
    until_found("the call counts again", renewed).await;
    drop(other);
    until_found("the other one was given back", async || two.ends_us().len() == 1).await;
    assert!(!two.is_allowed().await, "one call is running");
    drop(cut_off);
    two.until_given_back(Duration::from_millis(100)).await;
    assert!(two.is_allowed().await);
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_lease_is_renewed_and_given_back_although_the_runtime_of_its_call_has_ended() {
    let living = runtime();
    let two = living.block_on(Two::start());
    let begun_there = patient().clock(two.clocked.clock()).connect_lazy(two.clocked.server().url()).unwrap();
    // The connection of the first one ends with the runtime, that of the other does not.
    for limiter in [&begun_there, &two.direct] {
        let ended = runtime();
        let held = ended.block_on(two.permit(limiter));
        living.block_on(two.renewed());
        drop(ended);
        for _ in 0..3 {
            living.block_on(two.renewed());
            assert!(!living.block_on(two.is_allowed()));
        }
        living.block_on(async { drop(held) });
        living.block_on(two.until_given_back(Duration::ZERO));
        assert!(living.block_on(two.is_allowed()));
    }
}

#[test]
fn a_lease_whose_answer_was_on_its_way_when_the_runtime_of_its_call_ended_is_given_back() {
    let living = runtime();
    let two = living.block_on(Two::start());
    // From now on the server knows the script.
    drop(living.block_on(two.permit(&two.direct)));
    living.block_on(two.until_given_back(Duration::ZERO));
    for is_executed_before in [true, false] {
        let ended = runtime();
        let proxy = living.block_on(Proxy::start(two.clocked.server().port()));
        let limiter = patient().clock(two.clocked.clock()).connect_lazy(proxy.url()).unwrap();
        // From now on it knows the overrides.
        let other = two.policy.clone();
        let decided = ended.block_on(async { limiter.check(&other, &Subject::of("bob")).await.unwrap() });
        let taken_us = two.full_lease_us();
        let taken = async || two.ends_us() == [taken_us];
        if is_executed_before {
            proxy.hold_replies();
        } else {
            proxy.hold_script();
        }
        let policy = two.policy.clone();
        ended.spawn(async move { drop(limiter.check(&policy, &Subject::of("alice")).await) });
        if is_executed_before {
            living.block_on(until_found("the lease is taken", taken));
        }
        living.block_on(until_found("the answer is held back", async || proxy.held() > 0));
        drop(ended);
        proxy.deliver();
        living.block_on(until_found("the lease is taken", taken));
        two.clocked.advance(LATEST);
        living.block_on(two.until_given_back(Duration::from_millis(100)));
        assert!(two.clocked.now_us() < taken_us, "it did not just end");
        drop(decided);
    }
}
