//! Concurrent calls when Redis goes away, and when it is back: each is counted where it was admitted, and nowhere else.

use tallygate::{DecidedBy, Limiter, OnOutage, Permit, Policy, Rule};
use tallygate_harness::clocked::Clocked;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, free_port};
use tallygate_harness::until::until_found;

use super::{Duration, admitted, call, patient, policy, subject, until_decided_by};

const KEY: &str = "tallygate:on.outage/leases:s";
const LEASE: Duration = Duration::from_secs(600);
const LIMIT: u64 = 2;

/// A server that is reached by a proxy, and a limiter that decides alone while it is not.
struct Reached {
    clocked: Clocked,
    proxy: Proxy,
    limiter: Limiter,
    policy: Policy,
}

impl Reached {
    async fn start() -> Self {
        let clocked = Clocked::start();
        let proxy = Proxy::start(clocked.server().port()).await;
        let builder = patient().on_outage(OnOutage::Local).clock(clocked.clock());
        let limiter = connected(&builder, &proxy.url()).await;
        Self { clocked, proxy, limiter, policy: policy(Rule::concurrency(LIMIT, LEASE)) }
    }

    fn server(&self) -> &Server {
        self.clocked.server()
    }

    /// Redis is away: there is nobody at its address.
    async fn go_away(&self) {
        self.proxy.point_to(free_port());
        self.proxy.cut();
        until_decided_by(&self.limiter, DecidedBy::Standby).await;
    }

    /// Redis is back, with all that it had.
    async fn come_back(&self) {
        self.proxy.point_to(self.server().port());
        until_decided_by(&self.limiter, DecidedBy::Backend).await;
    }

    async fn admitted_by(&self, decided_by: DecidedBy) -> Permit {
        let permit = admitted(&self.limiter, &self.policy).await;
        assert_eq!(permit.decided_by(), decided_by);
        permit
    }

    /// Asserts who decides, and how many more calls that admits.
    async fn assert_remaining(&self, decided_by: DecidedBy, remaining: u64) {
        let peek = self.limiter.peek(&self.policy, subject()).await.unwrap();
        assert_eq!((peek.decided_by(), peek.report()[0].remaining()), (decided_by, remaining));
    }

    fn leases(&self) -> u64 {
        self.server().ask(&format!("ZCARD {KEY}"))
    }

    /// When the only lease ends.
    fn end_us(&self) -> u64 {
        let [(_, end_us)]: [(redis::Value, String); 1] = self.server().ask(&format!("ZRANGE {KEY} 0 -1 WITHSCORES"));
        end_us.parse().unwrap()
    }

    async fn until_given_back(&self) {
        // Between two attempts, some time passes.
        let given_back = async || {
            self.clocked.advance(Duration::from_millis(100));
            self.leases() == 0
        };
        until_found("the leases were given back", given_back).await;
    }
}

#[tokio::test]
async fn a_call_is_counted_by_redis_or_by_the_standby_whichever_has_admitted_it() {
    let reached = Reached::start().await;
    let of_redis = reached.admitted_by(DecidedBy::Backend).await;
    reached.go_away().await;
    let of_standby = [reached.admitted_by(DecidedBy::Standby).await, reached.admitted_by(DecidedBy::Standby).await];
    assert!(!call(&reached.limiter, &reached.policy).await.is_allowed());
    // The standby did not count it.
    drop(of_redis);
    assert!(!call(&reached.limiter, &reached.policy).await.is_allowed());
    assert_eq!(reached.leases(), 1, "nobody reaches the server");

    reached.come_back().await;
    reached.until_given_back().await;
    reached.assert_remaining(DecidedBy::Backend, LIMIT).await;
    // Redis did not count these.
    let [one, other] = of_standby;
    drop(one);
    reached.assert_remaining(DecidedBy::Backend, LIMIT).await;

    reached.go_away().await;
    reached.assert_remaining(DecidedBy::Standby, LIMIT - 1).await;
    drop(other);
    reached.assert_remaining(DecidedBy::Standby, LIMIT).await;
}

#[tokio::test]
async fn a_lease_that_was_taken_before_an_outage_is_renewed_and_given_back_after_it() {
    let reached = Reached::start().await;
    let of_redis = reached.admitted_by(DecidedBy::Backend).await;
    reached.go_away().await;
    // Half of the lease is over, so it is to be renewed.
    reached.clocked.advance(LEASE / 2);
    reached.assert_remaining(DecidedBy::Standby, LIMIT).await;

    reached.come_back().await;
    let first_end_us = reached.end_us();
    let renewed = async || {
        reached.clocked.advance(LEASE / 100);
        reached.end_us() > first_end_us
    };
    until_found("the lease was renewed", renewed).await;
    reached.assert_remaining(DecidedBy::Backend, LIMIT - 1).await;
    drop(of_redis);
    reached.until_given_back().await;
    reached.assert_remaining(DecidedBy::Backend, LIMIT).await;
}

#[tokio::test]
async fn a_lease_ends_by_itself_in_an_outage_that_is_longer() {
    let reached = Reached::start().await;
    let of_redis = reached.admitted_by(DecidedBy::Backend).await;
    reached.go_away().await;
    drop(of_redis);
    reached.clocked.advance(2 * LEASE);
    reached.come_back().await;
    reached.assert_remaining(DecidedBy::Backend, LIMIT).await;
    let _both = [reached.admitted_by(DecidedBy::Backend).await, reached.admitted_by(DecidedBy::Backend).await];
    assert!(!call(&reached.limiter, &reached.policy).await.is_allowed());
}
