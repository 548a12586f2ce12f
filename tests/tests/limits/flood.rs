//! The memory backend keeps no more subjects than it may, and of these the ones that matter.

use std::time::Duration;

use futures_util::FutureExt as _;
use tallygate::testing::ManualClock;
use tallygate::{BackendError, Ban, Decision, Limiter, Policy, Rule, Subject};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::length::cases;
use tallygate_harness::seed::seed;

const HOUR: Duration = Duration::from_secs(3_600);
const FLOOD: usize = 1_000_000;

struct Memory {
    limiter: Limiter,
    clock: ManualClock,
}

impl Memory {
    fn of(max_subjects: usize) -> Self {
        let clock = ManualClock::new(time(START_US));
        let builder = Limiter::builder().clock(&clock).max_subjects(max_subjects);
        Self { limiter: builder.build_in_memory().unwrap(), clock }
    }

    fn call(&self, policy: &Policy, subject: &Subject) -> Result<Decision, BackendError> {
        self.limiter.check(policy, subject).into_future().now_or_never().unwrap()
    }

    fn admits(&self, policy: &Policy, subject: &Subject) -> bool {
        self.call(policy, subject).unwrap().is_allowed()
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// The number of subjects, as the debug output of the limiter shows it.
    fn subjects(&self) -> usize {
        let text = format!("{:?}", self.limiter);
        let (_, count) = text.split_once("tallies: ").unwrap();
        count.split([',', ' ']).next().unwrap().parse().unwrap()
    }
}

fn policy(count: u64) -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(count, HOUR)).build().unwrap()
}

fn invented(number: usize) -> Subject {
    Subject::of("invented").and(number)
}

#[test]
fn a_flood_of_invented_subjects_stays_within_the_cap_and_clears_no_denial() {
    let max_subjects = 10_000;
    let (memory, policy) = (Memory::of(max_subjects), policy(2));
    let victims: Vec<_> = (0..100).map(|number| Subject::of("victim").and(number)).collect();
    for victim in &victims {
        assert!(memory.admits(&policy, victim) && memory.admits(&policy, victim));
    }
    for number in 0..FLOOD {
        assert!(memory.admits(&policy, &invented(number)));
        if number % 50_000 == 0 {
            assert!(memory.subjects() <= max_subjects);
        }
    }
    assert!(memory.subjects() <= max_subjects);
    assert!(victims.iter().all(|victim| !memory.admits(&policy, victim)));
}

#[test]
fn a_cap_of_any_size_is_never_passed() {
    for max_subjects in [1, 2, 63, 64, 65, 100, 1_000, 4_097] {
        let (memory, policy) = (Memory::of(max_subjects), policy(2));
        for number in 0..2 * max_subjects {
            assert!(memory.admits(&policy, &invented(number)));
        }
        // Where subjects are spread over several locks, each has the same share.
        assert!((max_subjects - max_subjects / 1_024..=max_subjects).contains(&memory.subjects()));
    }
}

#[test]
fn where_all_subjects_are_being_denied_a_new_one_is_not_decided_until_their_time_has_come() {
    let max_subjects = 1_000;
    let (memory, policy) = (Memory::of(max_subjects), policy(1));
    for number in 0..max_subjects {
        assert!(memory.admits(&policy, &invented(number)));
    }
    for number in max_subjects..2 * max_subjects {
        let outage = memory.call(&policy, &invented(number)).unwrap_err();
        assert!(outage.to_string().contains("raise `max_subjects`"), "{outage}");
    }
    assert!((0..max_subjects).all(|number| !memory.admits(&policy, &invented(number))));
    memory.pass(HOUR);
    assert!((max_subjects..2 * max_subjects).all(|number| memory.admits(&policy, &invented(number))));
}

#[test]
fn tallies_that_are_over_leave_as_new_subjects_come() {
    let subjects = 100_000;
    let (memory, policy) = (Memory::of(10 * subjects), policy(1));
    for round in 0..5 {
        for number in 0..subjects {
            assert!(memory.admits(&policy, &invented(round * subjects + number)));
        }
        // Each has looked at two that were there before.
        assert!(memory.subjects() <= subjects + subjects / 100, "{} in round {round}", memory.subjects());
        memory.pass(HOUR);
    }
}

#[test]
fn whether_a_subject_is_denied_is_said_by_the_counts_of_its_last_call() {
    let max_subjects = 100;
    let (memory, free) = (Memory::of(max_subjects), policy(1));
    let paid = free.with_counts([100]);
    let victims: Vec<_> = (0..10).map(|number| Subject::of("victim").and(number)).collect();
    for victim in &victims {
        assert!(memory.admits(&paid, victim) && !memory.admits(&free, victim));
    }
    for number in 0..10 * max_subjects {
        assert!(memory.admits(&paid, &invented(number)));
    }
    assert!(victims.iter().all(|victim| !memory.admits(&free, victim)));
}

#[test]
fn a_peek_and_the_end_of_a_ban_replace_no_subject() {
    let (memory, known, stranger) = (Memory::of(1), Subject::of("known"), Subject::of("stranger"));
    let ban = Ban::new(3, HOUR, HOUR);
    let policy = Policy::builder("p").rule(Rule::sliding_window(2, HOUR)).ban(ban).build().unwrap();
    assert!(memory.admits(&policy, &known));
    let look = memory.limiter.peek(&policy, &stranger).into_future().now_or_never().unwrap().unwrap();
    assert_eq!((look.is_allowed(), look.report()[0].remaining()), (true, 2));
    memory.limiter.check(&policy, &stranger).unban().now_or_never().unwrap().unwrap();
    assert!(memory.admits(&policy, &known) && !memory.admits(&policy, &known));
}

#[test]
fn a_cap_too_small_for_the_subjects_of_one_call_lets_no_call_in_uncounted() {
    let (memory, one, other) = (Memory::of(1), Subject::of("one"), Subject::of("other"));
    let rule = Rule::sliding_window(3, HOUR);
    let policy = Policy::builder("p").rule(rule.clone()).rule_on("other", rule).build().unwrap();
    for _ in 0..10 {
        let call = memory.limiter.check(&policy, &one).subject("other", &other);
        let outage = call.into_future().now_or_never().unwrap().unwrap_err();
        assert!(outage.to_string().contains("raise `max_subjects`"), "{outage}");
    }
}

fn policy_of(name: &'static str, count: u64) -> Policy {
    Policy::builder(name).rule(Rule::sliding_window(count, HOUR)).build().unwrap()
}

#[test]
fn a_flood_of_one_policy_leaves_room_for_new_subjects_of_another_and_forgets_none_of_its_calls() {
    let max_subjects = 2_000;
    let (memory, flooded, other) = (Memory::of(max_subjects), policy_of("flooded", 1), policy_of("other", 3));
    for number in 0..10 * max_subjects {
        // All of its subjects are being denied, so it is the flooded policy that has no room.
        assert_eq!(memory.call(&flooded, &invented(number)).is_ok(), number < max_subjects, "{number}");
    }
    for round in 0..4 {
        for number in 0..300 {
            assert_eq!(memory.admits(&other, &Subject::of("user").and(number)), round < 3, "{number} in round {round}");
        }
        for number in 0..max_subjects {
            drop(memory.call(&flooded, &invented((10 + round) * max_subjects + number)));
        }
    }
    assert!(memory.subjects() <= max_subjects);
}

#[test]
fn whichever_policy_is_flooded_and_in_whatever_order_the_other_counts_each_call() {
    for case in 0..cases(15, 500) {
        let seed = seed().wrapping_add(case);
        let mut random = fastrand::Rng::with_seed(seed);
        let max_subjects = [64, 500, 3_000][random.usize(..3)];
        let (counts, ban) = ([random.u64(1..4), random.u64(1..4)], Ban::new(2, HOUR, HOUR));
        let small = Policy::builder("small").rule(Rule::sliding_window(counts[0], HOUR));
        let small = if random.bool() { small.rule(Rule::fixed_window(counts[0], 2 * HOUR)) } else { small };
        let flooded = Policy::builder("flooded").rule(Rule::sliding_window(counts[1], HOUR));
        let flooded = if random.bool() { flooded.ban(ban) } else { flooded };
        let (memory, small, flooded) = (Memory::of(max_subjects), small.build().unwrap(), flooded.build().unwrap());
        let subjects: Vec<_> = (0..max_subjects / 8).map(|number| Subject::of("user").and(number)).collect();
        let mut made = vec![0; subjects.len()];
        // The small policy may be there first.
        let mut flood = if random.bool() { 0 } else { max_subjects };
        for number in 0..flood {
            drop(memory.call(&flooded, &invented(number)));
        }
        for _ in 0..4 * max_subjects {
            if random.u8(..4) == 0 {
                let user = random.usize(..subjects.len());
                let is_allowed = memory.call(&small, &subjects[user]).unwrap().is_allowed();
                assert_eq!(is_allowed, made[user] < counts[0], "user {user}, call {}, seed {seed}", made[user]);
                made[user] += 1;
            } else {
                drop(memory.call(&flooded, &invented(flood - usize::from(flood > 0 && random.bool()))));
                flood += 1;
            }
        }
    }
}

#[test]
fn a_tally_that_is_not_denied_goes_before_one_that_is_whichever_policy_needs_the_room() {
    let max_subjects = 1_000;
    let (memory, flooded) = (Memory::of(max_subjects), policy_of("flooded", 2));
    let victims: Vec<_> = (0..max_subjects / 2).map(|number| Subject::of("victim").and(number)).collect();
    for victim in &victims {
        assert!(memory.admits(&flooded, victim) && memory.admits(&flooded, victim));
    }
    for number in 0..max_subjects {
        assert!(memory.admits(&flooded, &invented(number)));
    }
    let other = policy_of("other", 1);
    for number in 0..max_subjects / 4 {
        assert!(memory.admits(&other, &invented(number)));
    }
    assert!(victims.iter().all(|victim| !memory.admits(&flooded, victim)));
}

#[test]
fn a_call_that_is_running_is_never_forgotten() {
    let max_subjects = 100;
    let memory = Memory::of(max_subjects);
    let running = Policy::builder("running").rule(Rule::concurrency(1, HOUR)).build().unwrap();
    let permits: Vec<_> = (0..max_subjects).map(|number| memory.call(&running, &invented(number)).unwrap()).collect();
    let outage = memory.call(&policy_of("other", 1), &invented(0)).unwrap_err();
    assert!(outage.to_string().contains("raise `max_subjects`"), "{outage}");
    assert!((0..max_subjects).all(|number| !memory.admits(&running, &invented(number))));
    drop(permits);
    assert!(memory.admits(&policy_of("other", 1), &invented(0)));
}
