//! What a reset, and the end of a ban, say of what replaced subjects share.

use futures_util::FutureExt as _;
use tallygate::{Ban, Policy, Subject};

use super::{HOUR, Memory, invented, rules};

/// So many subjects that most new ones share what these have left.
fn flooded(policy: &Policy) -> Memory {
    let memory = Memory::of(64);
    for number in 0..40 * 64 {
        let _ = memory.call(policy, &invented(number));
    }
    memory
}

fn stranger(number: usize) -> Subject {
    Subject::of("stranger").and(number)
}

#[test]
fn a_reset_says_how_long_what_others_share_may_deny_a_subject() {
    for rule in rules(1) {
        let policy = Policy::builder("p").rule(rule.clone()).build().unwrap();
        let (memory, empty) = (flooded(&policy), Memory::of(64));
        let reset =
            |memory: &Memory, subject| memory.limiter.check(&policy, subject).reset().now_or_never().unwrap().unwrap();
        let denied = (0..50).map(stranger).find(|subject| !memory.admits(&policy, subject)).unwrap();
        let traced_for = reset(&memory, &denied).unwrap();
        assert!(!memory.admits(&policy, &denied), "{rule}: it shares what others have left");
        memory.pass(traced_for);
        assert_eq!(reset(&memory, &denied), None);
        assert!(memory.admits(&policy, &denied), "{rule}");
        // Without a trace, nothing is left.
        assert!(empty.admits(&policy, &denied) && !empty.admits(&policy, &denied));
        assert_eq!(reset(&empty, &denied), None);
        assert!(empty.admits(&policy, &denied));
    }
}

#[test]
fn the_end_of_a_ban_says_how_long_what_others_share_may_deny_a_subject() {
    for rule in rules(1) {
        let policy = Policy::builder("p").rule(rule.clone()).ban(Ban::new(100, HOUR, HOUR)).build().unwrap();
        let memory = flooded(&policy);
        let unban = |number| {
            let stranger = stranger(number);
            memory.limiter.check(&policy, &stranger).unban().now_or_never().unwrap().unwrap()
        };
        let longest = (0..50).filter_map(unban).max().unwrap();
        memory.pass(longest);
        assert!((0..50).all(|number| unban(number).is_none()), "{rule}");
    }
}
