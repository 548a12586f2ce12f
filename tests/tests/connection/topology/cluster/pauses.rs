//! Pauses whose slot moves from one node to another.

use std::time::Duration;

use tallygate::{Check, Decision, Limiter, Permit, Policy, RejectionKind, Rule, Subject};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::{Server, connected, patient};
use tokio::task;

const PAUSE: Duration = Duration::from_secs(30);

struct Caller {
    limiter: Limiter,
    policy: Policy,
}

impl Caller {
    /// A call on a subject that may be paused, and on another one.
    fn check<'a>(&'a self, subject: &'a Subject) -> Check<'a> {
        self.limiter.check(&self.policy, subject).subject("host", subject)
    }

    async fn assert_paused(&self, subject: &Subject) {
        let denial = self.check(subject).await.unwrap().into_result().unwrap_err();
        assert_eq!(denial.kind(), RejectionKind::Paused);
    }

    /// Calls until one is tried: the place of the one before is given back in the background.
    async fn tried(&self, subject: &Subject) -> Permit {
        loop {
            match self.check(subject).await.unwrap() {
                Decision::Allowed(permit) => return permit,
                Decision::Denied(denial) => assert_eq!(denial.kind(), RejectionKind::Paused),
            }
            task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_pause_holds_and_then_one_call_at_a_time_is_tried_while_their_slot_moves() {
    let cluster = Cluster::start();
    for is_in_shadow in [false, true] {
        let (clock, prefix, subject) = (new_clock(), format!("moving-{is_in_shadow}"), Subject::of("s"));
        let limiter = connected(&patient().prefix(&*prefix).clock(&clock), &cluster.url()).await;
        let rule = || Rule::sliding_window(100, Duration::from_secs(3_600));
        let policy = Policy::builder("p").rule(rule()).rule_on("host", rule()).pausable().build().unwrap();
        if is_in_shadow {
            // Then no rule in force counts the subject that is paused.
            limiter.override_policy("p").rules([rule().shadow()]).set().await.unwrap();
        }
        let caller = Caller { limiter, policy };
        drop(caller.tried(&subject).await);
        caller.check(&subject).pause(PAUSE).await.unwrap();

        let keys = |master: &_| keys_of_pauses(master, &prefix);
        let key = cluster.masters().iter().flat_map(keys).next().unwrap();
        let slot = cluster.slot_of(&key);
        let from = cluster.owner(slot);
        let to = cluster.masters().iter().find(|master| master.port() != from.port()).unwrap();
        cluster.begin_move(slot, to);
        let other = connected(&patient().prefix(&*prefix).clock(&clock), &cluster.url()).await;
        let other = Caller { limiter: other, policy: caller.policy.clone() };
        other.assert_paused(&subject).await;
        // Now the pause is there, and the tallies are still here. What was heard is no longer cached.
        Cluster::move_key(from, &key, to);
        clock.advance(PAUSE / 5);
        other.assert_paused(&subject).await;

        clock.advance(PAUSE);
        for caller in [&caller, &other, &caller] {
            let tried = caller.tried(&subject).await;
            other.assert_paused(&subject).await;
            drop(tried);
        }
        cluster.move_keys(slot, to);
        let tried = caller.tried(&subject).await;
        other.assert_paused(&subject).await;
        tried.succeeded().await.unwrap();
        cluster.end_move(slot, to);
        let _open = other.check(&subject).await.unwrap().into_result().unwrap();
        assert!(caller.check(&subject).await.unwrap().is_allowed());
    }
}

fn keys_of_pauses(master: &Server, prefix: &str) -> Vec<String> {
    master.ask(&format!("KEYS {prefix}:p/pause:*"))
}
