//! Bans, and the denials that lead to them, of subjects that were replaced.

use std::time::Duration;

use futures_util::FutureExt as _;
use tallygate::{Ban, Decision, Policy, RejectionKind, Rule, Subject};

use super::{HOUR, Memory, replace, try_three_times};

fn kind(decision: &Decision) -> Option<RejectionKind> {
    match decision {
        Decision::Denied(denial) => Some(denial.kind()),
        Decision::Allowed(_) => None,
    }
}

fn banning() -> Policy {
    let ban = Ban::new(3, 2 * HOUR, HOUR);
    Policy::builder("banning").rule(Rule::sliding_window(1, HOUR)).ban(ban).build().unwrap()
}

#[test]
fn a_banned_subject_that_was_replaced_stays_banned_until_its_ban_ends_or_is_ended() {
    try_three_times(|| {
        let (memory, policy, clients) = (Memory::of(1), banning(), ["one", "two", "three"].map(Subject::of));
        for client in &clients {
            assert_eq!((0..4).filter(|_| memory.admits(&policy, client)).count(), 1);
            replace(&memory);
        }
        memory.pass(Duration::from_secs(3_599));
        for client in &clients {
            assert_eq!(kind(&memory.call(&policy, client).unwrap()), Some(RejectionKind::Banned));
            replace(&memory);
        }
        let check = |client| memory.limiter.check(&policy, client);
        check(&clients[0]).unban().now_or_never().unwrap().unwrap();
        check(&clients[1]).ban(2 * HOUR).now_or_never().unwrap().unwrap();
        replace(&memory);
        memory.pass(Duration::from_secs(10));
        for (client, is_admitted) in clients.iter().zip([true, false, true]) {
            assert_eq!(memory.admits(&policy, client), is_admitted);
            replace(&memory);
        }
    });
}

#[test]
fn a_ban_that_is_shortened_after_its_subject_was_replaced_is_as_short() {
    let (memory, policy, client) = (Memory::of(1), banning(), Subject::of("client"));
    for hours in [9, 1] {
        memory.limiter.check(&policy, &client).ban(hours * HOUR).now_or_never().unwrap().unwrap();
        replace(&memory);
    }
    memory.pass(HOUR + Duration::from_secs(1));
    assert!(memory.admits(&policy, &client));
}

#[test]
fn denials_of_a_subject_that_was_replaced_count_until_they_are_over_each() {
    try_three_times(|| {
        let (memory, policy, client) = (Memory::of(1), banning(), Subject::of("client"));
        assert!(memory.admits(&policy, &client) && !memory.admits(&policy, &client));
        memory.pass(HOUR / 2);
        assert!(!memory.admits(&policy, &client));
        replace(&memory);
        // The first of the two denials is over.
        memory.pass(Duration::from_secs(5_410));
        assert!(memory.admits(&policy, &client));
        for expected in [RejectionKind::Limited, RejectionKind::Banned] {
            assert!(!memory.admits(&policy, &client));
            let look = memory.limiter.peek(&policy, &client).into_future().now_or_never().unwrap().unwrap();
            assert_eq!(kind(&look), Some(expected));
            replace(&memory);
        }
    });
}

#[test]
fn many_denials_of_a_subject_that_was_replaced_lead_to_its_ban_no_later() {
    try_three_times(|| {
        let (memory, client, denials) = (Memory::of(1), Subject::of("client"), 577);
        let ban = Ban::new(denials + 1, HOUR, 3 * HOUR);
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, 2 * HOUR)).ban(ban).build().unwrap();
        assert!(memory.admits(&policy, &client));
        for number in 0..denials {
            // In four groups, which are rounded up when they are left.
            if number % denials.div_ceil(4) == 0 {
                memory.pass(HOUR / 4);
            }
            assert!(!memory.admits(&policy, &client));
        }
        replace(&memory);
        // The first denial is all but over.
        memory.pass(Duration::from_secs(890));
        assert_eq!(kind(&memory.call(&policy, &client).unwrap()), Some(RejectionKind::Limited));
        let look = memory.limiter.peek(&policy, &client).into_future().now_or_never().unwrap().unwrap();
        assert_eq!(kind(&look), Some(RejectionKind::Banned));
    });
}
