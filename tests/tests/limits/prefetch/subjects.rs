//! Calls of several subjects, of which one is busy: what happens to them while Redis is asked for the rest.

use tallygate::{Policy, Rule, Subject};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tokio::task::{JoinHandle, yield_now};

use super::busy::{AHEAD, COUNT, SECOND, tenant};

const USER_COUNT: u64 = 10;

/// Users of a busy tenant, whose calls a proxy can hold.
struct Tenancy {
    proxy: Proxy,
    _server: Server,
    clock: tallygate::testing::ManualClock,
    limiter: tallygate::Limiter,
    other: tallygate::Limiter,
    policy: Policy,
}

impl Tenancy {
    async fn start() -> Self {
        let (server, clock) = (Server::start(), new_clock());
        let proxy = Proxy::start(server.port()).await;
        let policy = Policy::builder("tenancy").rule(Rule::sliding_window(USER_COUNT, 60 * SECOND));
        let policy = policy.rule_on("tenant", Rule::sliding_window(COUNT, 60 * SECOND)).prefetch(AHEAD);
        let tenancy = Self {
            limiter: connected(&patient().clock(&clock), &proxy.url()).await,
            other: connected(&patient().clock(&clock), &server.url()).await,
            proxy,
            _server: server,
            clock,
            policy: policy.build().unwrap(),
        };
        // Until some of the tenant are taken ahead: then a user alone is asked for.
        let mut user = 1_000;
        until_found("a call takes one of the tenant's ahead", async || {
            user += 1;
            tenancy.call(user).await;
            tenancy.taken().await > 0
        })
        .await;
        tenancy
    }

    async fn call(&self, user: u64) -> bool {
        let (user, tenant) = (Subject::of(user), tenant());
        self.limiter.check(&self.policy, &user).subject("tenant", &tenant).await.unwrap().is_allowed()
    }

    /// Begins a call of that user, which is on its way while replies are held.
    async fn begin(&self, user: u64) -> JoinHandle<bool> {
        self.proxy.hold_replies();
        let held = self.proxy.held();
        let (limiter, policy) = (self.limiter.clone(), self.policy.clone());
        let call = tokio::spawn(async move {
            let (user, tenant) = (Subject::of(user), tenant());
            limiter.check(&policy, &user).subject("tenant", &tenant).await.unwrap().is_allowed()
        });
        until_found("the reply is held", async || {
            yield_now().await;
            self.proxy.held() > held
        })
        .await;
        call
    }

    /// What remains of the user and of the tenant, as another process sees it.
    async fn remaining(&self, user: u64) -> [u64; 2] {
        let (user, tenant) = (Subject::of(user), tenant());
        let peeked = self.other.peek(&self.policy, &user).subject("tenant", &tenant).await.unwrap();
        [0, 1].map(|rule| peeked.report()[rule].remaining())
    }

    /// How much this process has of the tenant that it has not used.
    async fn taken(&self) -> u64 {
        let (user, tenant) = (Subject::of(0), tenant());
        let own = self.limiter.peek(&self.policy, &user).subject("tenant", &tenant).await.unwrap();
        own.report()[1].remaining() - self.remaining(0).await[1]
    }
}

#[tokio::test]
async fn a_call_whose_part_has_ended_before_the_answer_is_counted_once_on_each_subject() {
    let tenancy = Tenancy::start().await;
    let used = COUNT - tenancy.remaining(0).await[1] - tenancy.taken().await;
    let call = tenancy.begin(1).await;
    tenancy.clock.advance(AHEAD);
    tenancy.proxy.deliver();
    assert!(call.await.unwrap());
    until_found("it is counted once", async || {
        tenancy.clock.advance(AHEAD);
        tenancy.remaining(1).await == [USER_COUNT - 1, COUNT - used - 1]
    })
    .await;
}

#[tokio::test]
async fn a_call_that_its_user_has_no_room_for_puts_back_what_it_has_taken_of_the_tenant() {
    let tenancy = Tenancy::start().await;
    for call in 0..2 * USER_COUNT {
        assert_eq!(tenancy.call(1).await, call < USER_COUNT);
    }
    let taken = tenancy.taken().await;
    assert!(!tenancy.call(1).await);
    assert!(tenancy.taken().await >= taken, "nothing was used");
}

#[tokio::test]
async fn a_call_that_is_dropped_puts_back_what_it_has_taken_of_the_tenant() {
    let tenancy = Tenancy::start().await;
    let taken = tenancy.taken().await;
    let call = tenancy.begin(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    tenancy.proxy.deliver();
    assert!(tenancy.taken().await >= taken, "nothing was used");
}

#[tokio::test]
async fn a_call_of_a_busy_tenant_asks_for_the_user_alone() {
    let tenancy = Tenancy::start().await;
    let mut user = 0;
    until_found("a call charges the user and not the tenant, whose calls were counted before", async || {
        user += 1;
        let [_, before] = tenancy.remaining(user).await;
        tenancy.call(user).await && tenancy.remaining(user).await == [USER_COUNT - 1, before]
    })
    .await;
}
