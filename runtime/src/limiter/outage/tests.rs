//! Who decides, with a store below that only says whether it is away.

use std::slice;

use tallygate_rules::{Ban, Rule};

use super::*;
use crate::subject::{Subject, SubjectKey};

const MINUTE: Duration = Duration::from_secs(60);

/// A store that decides nothing.
#[derive(Default)]
struct Stub {
    outage: Option<BackendErrorKind>,
    has_decided: bool,
}

impl MayBeAway for Stub {
    fn known_outage(&self) -> Option<BackendErrorKind> {
        self.outage
    }

    fn has_decided(&self) -> bool {
        self.has_decided
    }

    fn have_clocks_differed(&self) -> bool {
        false
    }
}

fn outage(on_outage: OnOutage) -> Outage {
    Outage::new(on_outage, NonZeroU64::new(2).unwrap(), 100, Clock::tokio())
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
    let store = Stub { has_decided: true, ..Stub::default() };
    for on_outage in [OnOutage::Deny, OnOutage::Local, OnOutage::Allow] {
        for reason in [Misuse, Unidentified, Wrong] {
            assert_eq!(outage(on_outage).substitute(&policy(1), reason, &store), None);
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
        let substitute_of = |policy| outage(on_outage).substitute(policy, BackendErrorKind::Away, &Stub::default());
        assert_eq!((substitute_of(&silent), substitute_of(&denying)), (substitute, None));
    }
}

#[test]
fn an_unknown_error_is_an_outage_only_once_the_store_has_decided() {
    let local = outage(OnOutage::Local);
    for (has_decided, substitute) in [(false, None), (true, Some(DecidedBy::Standby))] {
        let store = Stub { has_decided, ..Stub::default() };
        assert_eq!(local.substitute(&policy(1), BackendErrorKind::Unknown, &store), substitute);
        assert_eq!(outage(OnOutage::Allow).substitute(&policy(1), BackendErrorKind::Unknown, &store), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_a_store_that_is_not_known_to_be_away_and_looks_now_and_then_for_one_that_is() {
    let (allowing, away) = (outage(OnOutage::Allow), Stub { outage: Some(BackendErrorKind::Away), has_decided: true });
    assert_eq!(allowing.state_of(&Stub::default(), &policy(1)), StoreState::There);
    for _ in 0..2 {
        assert_eq!(allowing.state_of(&away, &policy(1)), StoreState::LookDue);
        assert_eq!(allowing.state_of(&away, &policy(1)), StoreState::Away(DecidedBy::Nobody));
        tokio::time::advance(LOOK_EVERY).await;
    }
    assert_eq!(outage(OnOutage::Deny).state_of(&away, &policy(1)), StoreState::There, "the store says why");
}

#[tokio::test]
async fn the_standby_admits_the_part_of_this_process_until_it_is_reset() {
    let (local, policy, subject) = (outage(OnOutage::Local), policy(4), subject());
    let call = call(&policy, &subject);
    let admits = || local.decide(DecidedBy::Standby, call).unwrap().answer.outcome == Outcome::Admitted;
    assert_eq!([admits(), admits(), admits()], [true, true, false], "2 processes admit 2 each");
    local.reset(call);
    assert!(admits());
}

#[test]
fn nobody_admits_calls_and_counts_nothing() {
    let (allowing, policy, subject) = (outage(OnOutage::Allow), policy(1), subject());
    for _ in 0..2 {
        let decided = allowing.decide(DecidedBy::Nobody, call(&policy, &subject)).unwrap();
        assert_eq!((decided.answer.outcome, decided.options.peek), (Outcome::Admitted, true));
    }
}

#[tokio::test]
async fn a_ban_reaches_the_standby_only_where_that_decides() {
    let builder = Policy::builder("p").rule(Rule::sliding_window(4, MINUTE));
    let (policy, subject) = (builder.ban(Ban::new(3, MINUTE, MINUTE)).build().unwrap(), subject());
    let call = call(&policy, &subject);
    for (on_outage, is_banned) in [(OnOutage::Local, true), (OnOutage::Deny, false)] {
        let outage = outage(on_outage);
        outage.ban(call, MINUTE).unwrap();
        let outcome = outage.decide(DecidedBy::Standby, call).unwrap().answer.outcome;
        assert_eq!(matches!(outcome, Outcome::Banned { .. }), is_banned);
    }
}
