//! The memory backend keeps no more subjects than it may, and of these the ones that matter.

mod bans;
mod duplicates;
mod resets;

use std::collections::HashSet;
use std::panic::catch_unwind;
use std::time::Duration;

use futures_util::FutureExt as _;
use tallygate::testing::ManualClock;
use tallygate::{BackendError, Ban, Decision, Limiter, Permit, Policy, Rule, Schedule, Subject, TokenBucket};
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

    /// Makes a call that may be refunded.
    fn permit(&self, policy: &Policy, subject: &Subject) -> Permit {
        let check = self.limiter.check(policy, subject).refundable().into_future();
        check.now_or_never().unwrap().unwrap().into_result().unwrap()
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

/// Refunds a call. A subject that was replaced has nothing to refund.
fn refunds(permit: Permit) -> bool {
    permit.refund().now_or_never().unwrap().unwrap()
}

/// Plays a test up to three times, each with other hashes: where there are few places, two keys have the same mark in one of
/// 16,384 cases.
fn try_three_times(play: fn()) {
    if (1..3).all(|_| catch_unwind(play).is_err()) {
        play();
    }
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
        // Once others were replaced, what is left of them denies some new subjects, too.
        let is_admitted = memory.admits(&policy, &invented(number));
        assert!(is_admitted || number > max_subjects);
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
        // What is left of another subject never closes such a limit.
        let (memory, policy) = (Memory::of(max_subjects), policy(9));
        for number in 0..2 * max_subjects {
            assert!(memory.admits(&policy, &invented(number)));
        }
        // Where subjects are spread over several locks, each has the same share.
        assert!((max_subjects - max_subjects / 1_024..=max_subjects).contains(&memory.subjects()));
    }
}

#[test]
fn where_all_subjects_are_being_denied_new_ones_are_admitted_and_all_stay_denied_until_their_time_has_come() {
    let max_subjects = 1_000;
    let (memory, policy) = (Memory::of(max_subjects), policy(1));
    let admitted: Vec<_> = (0..5 * max_subjects).map(|number| memory.admits(&policy, &invented(number))).collect();
    let early = admitted.iter().filter(|is_admitted| !**is_admitted).count();
    assert!(early <= max_subjects / 50, "{early} are denied early");
    assert!((0..5 * max_subjects).all(|number| !memory.admits(&policy, &invented(number))));
    memory.pass(HOUR + Duration::from_secs(1));
    assert!((0..max_subjects).all(|number| memory.admits(&policy, &invented(number))));
}

/// Calls 64 subjects in any order, of which a few have tallies at once, for several windows. `most` says how many calls
/// of a subject may be admitted at times, oldest first, of which the last is a new one.
fn call_in_any_order(policy: &Policy, seed: u64, most: impl Fn(&[Duration]) -> bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let memory = Memory::of([1, 4, 16, 60][random.usize(..4)]);
    let (mut now, mut admitted) = (Duration::ZERO, vec![Vec::new(); 64]);
    for _ in 0..2_000 {
        let number = random.usize(..admitted.len());
        if memory.admits(policy, &invented(number)) {
            admitted[number].push(now);
            assert!(most(&admitted[number]), "subject {number}, seed {seed}");
        }
        let passed = Duration::from_micros(random.u64(..us(2 * HOUR / 300)));
        memory.pass(passed);
        now += passed;
    }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

#[test]
fn no_subject_of_a_sliding_window_is_above_its_count_whoever_replaces_it() {
    for case in 0..cases(30, 1_000) {
        let count = 1 + case % 6;
        call_in_any_order(&policy(count), seed().wrapping_add(case), |calls| {
            let last = calls.last().unwrap();
            calls.iter().filter(|at| **at + HOUR > *last).count() as u64 <= count
        });
    }
}

#[test]
fn a_subject_that_returns_has_what_it_used_and_waits_as_long() {
    let windows = [Rule::sliding_window(5, HOUR), Rule::fixed_window(5, HOUR), Rule::sliding_counter(5, HOUR)];
    for rule in windows.into_iter().chain([Rule::from_bucket(5, TokenBucket::new(HOUR))]) {
        let policy = Policy::builder("p").rule(rule).build().unwrap();
        let (remaining, reset) = left_after(0, &policy);
        assert_eq!(remaining, 1);
        // Each limiter has other hashes, by which a subject seems to be another now and then.
        let returned = [(); 3].map(|()| left_after(128, &policy));
        assert!(returned.iter().all(|(left, _)| *left <= 1), "a peek does not show what is left: {returned:?}");
        let is_same = |(left, time): &(u64, Duration)| *left == 1 && time.abs_diff(reset) < Duration::from_secs(1);
        assert!(returned.iter().any(is_same), "{returned:?}, not {reset:?}");
    }
}

/// Calls four times and lets so many others come. Returns what is left then, and the time until nothing counts.
fn left_after(others: usize, policy: &Policy) -> (u64, Duration) {
    let (memory, client) = (Memory::of(64), Subject::of("client"));
    assert!((0..4).all(|_| memory.admits(policy, &client)));
    let early = (0..others).filter(|number| !memory.admits(policy, &invented(*number))).count();
    assert!(early <= 2, "{early} are denied early");
    // Times were rounded up.
    memory.pass(Duration::from_secs(1));
    let look = memory.limiter.peek(policy, &client).into_future().now_or_never().unwrap().unwrap();
    let (remaining, reset) = (look.report()[0].remaining(), look.report()[0].reset());
    assert_eq!((0..5).filter(|_| memory.admits(policy, &client)).count() as u64, remaining);
    (remaining, reset)
}

/// One rule of each algorithm that counts calls, which admits so many within hours.
fn rules(count: u64) -> [Rule; 5] {
    [
        Rule::sliding_window(count, HOUR),
        Rule::fixed_window(count, HOUR),
        Rule::sliding_counter(count, HOUR),
        Rule::from_bucket(count, TokenBucket::new(HOUR)),
        Rule::cron(count, Schedule::parse("0 0 0 1 1 *", "UTC").unwrap()),
    ]
}

#[test]
fn a_subject_that_is_replaced_while_the_clock_stands_still_keeps_its_limit() {
    for rule in rules(1) {
        let (memory, client) = (Memory::of(1), Subject::of("client"));
        let policy = Policy::builder("p").rule(rule.clone()).build().unwrap();
        assert!(memory.admits(&policy, &client));
        memory.clock.set(time(START_US - 50_000));
        replace(&memory);
        assert!(!memory.admits(&policy, &client), "{rule}");
    }
}

#[test]
fn a_replaced_subject_whose_calls_were_all_refunded_has_its_whole_count() {
    try_three_times(|| {
        for rule in rules(2) {
            let (memory, client) = (Memory::of(1), Subject::of("client"));
            let policy = Policy::builder("p").rule(rule.clone()).build().unwrap();
            assert!(refunds(memory.permit(&policy, &client)));
            replace(&memory);
            assert!((0..2).all(|_| memory.admits(&policy, &client)), "{rule}");
            assert!(!memory.admits(&policy, &client), "{rule}");
        }
    });
}

#[test]
fn a_reset_subject_that_was_replaced_begins_again() {
    let (memory, policy, client) = (Memory::of(64), policy(5), Subject::of("client"));
    assert!((0..4).all(|_| memory.admits(&policy, &client)));
    assert!((0..128).all(|number| memory.admits(&policy, &invented(number))));
    memory.limiter.check(&policy, &client).reset().now_or_never().unwrap().unwrap();
    assert!((0..5).all(|_| memory.admits(&policy, &client)));
}

/// Replaces the only subject, also if it is banned, by one of a policy with fewer tallies.
fn replace(memory: &Memory) {
    // It counts nothing, and so leaves nothing when it is replaced.
    let (policy, other) = (policy_of("others", 1), Subject::of("other"));
    let call = memory.limiter.check(&policy, &other).cost(0);
    // It may seem to be the one before, and be denied for that.
    drop(call.into_future().now_or_never().unwrap().unwrap());
}

#[test]
fn what_a_call_has_used_is_counted_where_its_subject_was_replaced_and_all_others_are_banned() {
    try_three_times(|| {
        let (memory, client, other) = (Memory::of(1), Subject::of("client"), Subject::of("other"));
        let rules = [Rule::sliding_window(9, HOUR), Rule::sliding_window(100, HOUR).counting("tokens")];
        let policy = Policy::builder("p").rules(rules).ban(Ban::new(9, HOUR, HOUR)).build().unwrap();
        let check = |client| memory.limiter.check(&policy, client);
        let permit = check(&client).refundable().into_future().now_or_never().unwrap().unwrap().into_result().unwrap();
        check(&other).ban(HOUR).now_or_never().unwrap().unwrap();
        assert!(permit.settle_units(&[("tokens", 40)]).now_or_never().unwrap().unwrap());
        check(&other).unban().now_or_never().unwrap().unwrap();
        let admits = |tokens| {
            check(&client).cost_of("tokens", tokens).into_future().now_or_never().unwrap().unwrap().is_allowed()
        };
        assert_eq!([61, 60].map(admits), [false, true]);
    });
}

#[test]
fn a_bucket_that_returns_under_another_count_is_no_fuller_than_before() {
    try_three_times(|| {
        let (memory, client) = (Memory::of(1), Subject::of("client"));
        let policy = Policy::builder("p").rule(Rule::from_bucket(5, TokenBucket::new(HOUR))).build().unwrap();
        assert!((0..2).all(|_| memory.admits(&policy, &client)));
        replace(&memory);
        memory.pass(Duration::from_secs(1));
        assert!(memory.admits(&policy, &client));
        replace(&memory);
        let of_both = [policy.with_counts([50]), policy];
        let admitted =
            of_both.iter().flat_map(|policy| [policy; 9]).filter(|policy| memory.admits(policy, &client)).count();
        assert!(admitted <= 2, "{admitted}");
    });
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
    let permits: Vec<_> = victims.iter().map(|victim| memory.permit(&paid, victim)).collect();
    assert!(victims.iter().all(|victim| !memory.admits(&free, victim)));
    for number in 0..10 * max_subjects {
        assert!(memory.admits(&paid, &invented(number)));
    }
    assert!(permits.into_iter().all(refunds), "a denied subject was replaced");
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
    for number in 0..4 * max_subjects {
        drop(memory.call(&flooded, &invented(number)).unwrap());
    }
    let mut early = 0;
    for round in 0..4 {
        for number in 0..300 {
            let is_admitted = memory.admits(&other, &Subject::of("user").and(number));
            assert!(!is_admitted || round < 3, "{number} in round {round}");
            early += u32::from(!is_admitted && round < 3);
        }
        for number in 0..max_subjects {
            drop(memory.call(&flooded, &invented((4 + round) * max_subjects + number)));
        }
    }
    assert!(early <= 9, "{early} calls are denied early");
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
        let (mut made, mut early) = (vec![0; subjects.len()], HashSet::new());
        // The small policy may be there first.
        let mut flood = if random.bool() { 0 } else { max_subjects };
        for number in 0..flood {
            drop(memory.call(&flooded, &invented(number)));
        }
        for _ in 0..4 * max_subjects {
            if random.u8(..4) == 0 {
                let user = random.usize(..subjects.len());
                let is_allowed = memory.call(&small, &subjects[user]).unwrap().is_allowed();
                assert!(!is_allowed || made[user] < counts[0], "user {user}, call {}, seed {seed}", made[user]);
                if !is_allowed && made[user] < counts[0] {
                    early.insert(user);
                }
                made[user] += u64::from(is_allowed);
            } else {
                drop(memory.call(&flooded, &invented(flood - usize::from(flood > 0 && random.bool()))));
                flood += 1;
            }
        }
        // A few take what is left of others for their own.
        let early = early.len();
        assert!(early <= max_subjects / 64 + 4, "{early} of {} are denied early, seed {seed}", max_subjects / 8);
    }
}

#[test]
fn a_tally_that_is_not_denied_goes_before_one_that_is_whichever_policy_needs_the_room() {
    let max_subjects = 1_000;
    let (memory, flooded) = (Memory::of(max_subjects), policy_of("flooded", 2));
    let victims: Vec<_> = (0..max_subjects / 2).map(|number| Subject::of("victim").and(number)).collect();
    let permits: Vec<_> = victims.iter().map(|victim| memory.permit(&flooded, victim)).collect();
    assert!(victims.iter().all(|victim| memory.admits(&flooded, victim)));
    for number in 0..max_subjects {
        assert!(memory.admits(&flooded, &invented(number)));
    }
    let other = policy_of("other", 1);
    let admitted = (0..max_subjects / 4).filter(|number| memory.admits(&other, &invented(*number))).count();
    assert!(admitted >= max_subjects / 4 - 5, "{admitted}");
    assert!(permits.into_iter().all(refunds), "a denied subject was replaced");
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
