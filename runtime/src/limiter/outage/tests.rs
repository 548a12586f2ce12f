//! Tests of who decides, with a store below that only says whether it is away.

use std::num::NonZeroU64;
use std::slice;

use tallygate_rules::{Ban, Rule};

use super::*;
use crate::call::CallOptions;
use crate::sleepers::Sleepers;
use crate::store::stub::StubStore;
use crate::subject::{Subject, SubjectKey};

const MINUTE: Duration = Duration::from_secs(60);

fn outage_of(on_outage: OnOutage, server: StubStore) -> Outage<StubStore, StubStore> {
    let (clock, sleepers) = (Clock::tokio(), Arc::new(Sleepers::new("test".to_owned())));
    let standby = Standby::new(clock.clone(), 100, NonZeroU64::new(2).unwrap(), sleepers);
    Outage::new(StubStore::default(), Arc::new(server), on_outage, standby, clock)
}

fn outage(on_outage: OnOutage) -> Outage<StubStore, StubStore> {
    outage_of(on_outage, StubStore::default())
}

fn policy(count: u64) -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(count, MINUTE)).build().unwrap()
}

fn subject() -> SubjectKey {
    Subject::of("s").key()
}

fn call<'a>(policy: &'a Policy, subject: &'a SubjectKey) -> Call<'a> {
    Call::new(policy, slice::from_ref(subject), CallOptions::PLAIN)
}

#[test]
fn no_mistake_is_decided_by_anything_else_whatever_a_policy_says() {
    use BackendErrorKind::{Misuse, Unidentified, Wrong};
    for on_outage in [OnOutage::Deny, OnOutage::Local, OnOutage::Allow] {
        for reason in [Misuse, Unidentified, Wrong] {
            let server = StubStore { has_decided: true, ..StubStore::default() };
            assert_eq!(outage_of(on_outage, server).substitute(&policy(1), reason), None);
        }
    }
}

#[test]
fn while_the_store_is_away_what_the_limiter_or_the_policy_says_decides() {
    let builder = || Policy::builder("p").rule(Rule::sliding_window(1, MINUTE));
    let (silent, denying) = (builder().build().unwrap(), builder().on_outage(OnOutage::Deny).build().unwrap());
    for (on_outage, substitute) in [
        (OnOutage::Deny, None),
        (OnOutage::Local, Some(DecidedBy::Standby)),
        (OnOutage::Allow, Some(DecidedBy::Nobody)),
    ] {
        let substitute_of = |policy| outage(on_outage).substitute(policy, BackendErrorKind::Away);
        assert_eq!((substitute_of(&silent), substitute_of(&denying)), (substitute, None));
    }
}

#[test]
fn an_unknown_error_is_an_outage_only_once_the_store_has_decided() {
    for (has_decided, substitute) in [(false, None), (true, Some(DecidedBy::Standby))] {
        let substitute_of = |on_outage| {
            let server = StubStore { has_decided, ..StubStore::default() };
            outage_of(on_outage, server).substitute(&policy(1), BackendErrorKind::Unknown)
        };
        assert_eq!([OnOutage::Local, OnOutage::Allow].map(substitute_of), [substitute, None]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_a_store_that_is_not_known_to_be_away_and_looks_now_and_then_for_one_that_is() {
    let away = || StubStore { outage: Some(BackendErrorKind::Away), has_decided: true, ..StubStore::default() };
    assert_eq!(outage(OnOutage::Allow).state_for(&policy(1)), StoreState::There);
    let allowing = outage_of(OnOutage::Allow, away());
    for _ in 0..2 {
        assert_eq!(allowing.state_for(&policy(1)), StoreState::AskDue);
        assert_eq!(allowing.state_for(&policy(1)), StoreState::Away(DecidedBy::Nobody));
        tokio::time::advance(ASK_EVERY).await;
    }
    let state = outage_of(OnOutage::Deny, away()).state_for(&policy(1));
    assert_eq!(state, StoreState::There, "the store says why");
}

#[tokio::test]
async fn the_standby_admits_the_part_of_this_process_until_it_is_reset() {
    let (local, policy, subject) = (outage(OnOutage::Local), policy(4), subject());
    let call = call(&policy, &subject);
    let admits = || local.decide_by(DecidedBy::Standby, call).unwrap().answer.outcome == Outcome::Admitted;
    assert_eq!([admits(), admits(), admits()], [true, true, false], "2 processes admit 2 each");
    local.reset(call).await.unwrap();
    assert!(admits());
}

#[test]
fn nobody_admits_calls_and_counts_nothing() {
    let (allowing, policy, subject) = (outage(OnOutage::Allow), policy(1), subject());
    for _ in 0..2 {
        let decided = allowing.decide_by(DecidedBy::Nobody, call(&policy, &subject)).unwrap();
        assert_eq!((decided.answer.outcome, decided.decided_by), (Outcome::Admitted, DecidedBy::Nobody));
    }
}

#[tokio::test]
async fn a_ban_reaches_the_standby_only_where_that_decides() {
    let builder = Policy::builder("p").rule(Rule::sliding_window(4, MINUTE));
    let (policy, subject) = (builder.ban(Ban::new(3, MINUTE, MINUTE)).build().unwrap(), subject());
    let call = call(&policy, &subject);
    for (on_outage, is_banned) in [(OnOutage::Local, true), (OnOutage::Deny, false)] {
        let outage = outage(on_outage);
        outage.ban(call, MINUTE).await.unwrap();
        let outcome = outage.decide_by(DecidedBy::Standby, call).unwrap().answer.outcome;
        assert_eq!(matches!(outcome, Outcome::Banned { .. }), is_banned);
    }
}

#[test]
fn a_call_that_the_store_did_not_decide_is_decided_in_its_place_or_has_its_error() {
    let (policy, subject) = (policy(1), subject());
    for (on_outage, decided_by) in [(OnOutage::Local, Ok(DecidedBy::Standby)), (OnOutage::Deny, Err("late"))] {
        let reason = BackendError::away("late");
        let decided = outage(on_outage).decide_without(reason, call(&policy, &subject));
        let decided = decided.map(|answered| answered.decided_by);
        assert_eq!(decided.map_err(|error| error.to_string()), decided_by.map_err(str::to_owned));
    }
}
