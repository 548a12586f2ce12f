//! What a store below is asked for the leases of calls.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tallygate_rules::Rule;
use tokio::runtime::Builder;
use tokio::task::yield_now;

use super::*;
use crate::call::{CallOptions, LeaseName};
use crate::policy::Policy;
use crate::store::stub::StubStore;
use crate::subject::Subject;

const LENGTH: Duration = Duration::from_secs(60);

fn leases(store: StubStore) -> RemoteLeases<StubStore> {
    let (clock, sleepers) = (Clock::tokio(), Arc::new(Sleepers::new("test".to_owned())));
    RemoteLeases::new(Arc::new(store), "test".to_owned(), clock, sleepers, Arc::default())
}

/// A call that takes a lease.
fn call() -> OwnedCall {
    let policy = Policy::builder("p").rule(Rule::concurrency(1, LENGTH)).build().unwrap();
    let options = CallOptions { lease: Some(LeaseName::next()), ..CallOptions::PLAIN };
    OwnedCall::new(Call::new(&policy, &[Subject::of("s").key()], options))
}

async fn asked(leases: &RemoteLeases<StubStore>) -> Vec<String> {
    for _ in 0..3 {
        yield_now().await;
    }
    leases.0.below.asked()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_after_half_its_length_and_given_back_when_it_is_dropped() {
    let (leases, call) = (leases(StubStore::default()), call());
    let lease = leases.decide(call.as_call()).await.unwrap().lease;
    assert_eq!(asked(&leases).await, ["decide 1"]);
    tokio::time::advance(LENGTH / 2).await;
    assert_eq!(asked(&leases).await, ["renew"]);
    drop(lease);
    assert_eq!(asked(&leases).await, ["give back"; 2], "once more, as a renewal may arrive behind the first");
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_holds_nothing() {
    let denied = StubStore::answering([Ok(Outcome::denied(0, crate::decision::Wait::NEVER))]);
    let (leases, call) = (leases(denied), call());
    assert!(leases.decide(call.as_call()).await.unwrap().lease.is_none());
    assert_eq!(asked(&leases).await, ["decide 1"]);
}

#[test]
fn a_runtime_that_ends_takes_no_place_of_lost_answers_along() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (leases, call) = (leases(StubStore::default()), call());
    let (home, late) = (Arc::clone(&leases.0), || leases.0.late.load(Ordering::Relaxed));
    runtime.block_on(async {
        tokio::spawn(async move { LateReturn::begin(&home, &call, home.clock.now_us()).unwrap().run().await });
        yield_now().await;
    });
    assert_eq!(late(), 1);
    drop(runtime);
    assert_eq!(late(), 0);
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_call_that_reaches_the_store_after_its_deadline_was_not_sent() {
    use crate::call::Awaited;
    use crate::limiter::Limiter;
    use crate::store::Store;
    use crate::system::Instant;

    let limiter = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
    let until = Instant::now();
    while Instant::now() <= until {
        yield_now().await;
    }
    let (call, awaited) = (call(), Awaited { caller: None, until: Some(until) });
    let Store::Redis(redis) = limiter.core.stack.store() else { unreachable!("it has a URL") };
    let late = redis.decide(Call { awaited: Some(&awaited), ..call.as_call() }).await;
    assert!(late.is_err_and(|error| error.is_refusal()), "no lease is given back that was never asked for");
}
