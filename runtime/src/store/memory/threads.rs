//! Tests of tallies that several threads use.

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;
use tallygate_rules::Rule;

use super::*;
use crate::call::{CallOptions, UnitCall};
use crate::decision::RuleStatus;
use crate::policy::GroupCost;
use crate::store::answer::Outcome;
use crate::subject::Subject;
use crate::sync::interleaved::{explore, fails};

const HOUR: Duration = Duration::from_secs(3_600);

/// Enough for several shards.
const MAX_SUBJECTS: usize = 8 * SHARD_SUBJECTS;

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new(Clock::tokio(), MAX_SUBJECTS))
}

fn subject(value: u32) -> SubjectKey {
    Subject::of(value).key()
}

fn decide(memory: &Memory, call: Call<'_>) -> bool {
    memory.decide(call).unwrap().outcome == Outcome::Admitted
}

/// A way to decide a plain call of one subject.
type Deciding = fn(&Memory, Call<'_>) -> bool;

/// Decides a call of a policy that counts only one subject.
fn decide_plain(memory: &Memory, call: Call<'_>) -> bool {
    memory.outcome(call.policy, &call.subjects[0], call.options.cost) == Some(Outcome::Admitted)
}

/// A planted mistake: between the two locks, other threads charge what this one has seen.
fn decide_in_two_locks(memory: &Memory, call: Call<'_>) -> bool {
    let seen = decide(memory, Call { options: CallOptions { peek: true, ..call.options }, ..call });
    decide(memory, call);
    seen
}

/// Three threads make two calls each. Four of these six calls have to be admitted.
fn four_of_six(deciding: [Deciding; 3]) -> impl Fn() + Clone + Send + Sync + 'static {
    let policy = Policy::builder("p").rule(Rule::sliding_window(4, HOUR)).build().unwrap();
    move || {
        let memory = memory();
        let threads = deciding.map(|deciding| {
            let (memory, policy) = (Arc::clone(&memory), policy.clone());
            thread::spawn(move || {
                let subjects = [subject(1)];
                let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
                (0..2).filter(|_| deciding(&memory, call)).count()
            })
        });
        let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 4);
    }
}

#[test]
fn threads_together_are_admitted_exactly_what_the_rule_counts() {
    explore(four_of_six([decide_plain, decide, decide_plain]));
}

#[test]
fn a_check_and_a_charge_under_two_locks_are_found() {
    assert!(fails(four_of_six([decide_in_two_locks; 3])));
}

#[test]
fn calls_of_several_subjects_never_wait_for_each_other_and_charge_all_of_them_or_none() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(2, HOUR)).rule_on("net", Rule::sliding_window(3, HOUR));
    let policy = policy.build().unwrap();
    explore(move || {
        let memory = memory();
        // Two main subjects and two nets, in all four combinations.
        let threads = [[1, 3], [2, 3], [1, 4], [2, 4]].map(|pair| {
            let (memory, policy) = (Arc::clone(&memory), policy.clone());
            thread::spawn(move || {
                let subjects = pair.map(subject);
                let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
                (pair, (0..2).filter(|_| decide(&memory, call)).count())
            })
        });
        let admitted = threads.map(|thread| thread.join().unwrap());
        let used = |place: usize, of: u32| -> usize {
            admitted.iter().filter(|(pair, _)| pair[place] == of).map(|(_, admitted)| admitted).sum()
        };
        for pair in [[1, 3], [2, 4]] {
            let subjects = pair.map(subject);
            let options = CallOptions { peek: true, report: true, ..CallOptions::PLAIN };
            let report = memory.decide(Call::new(&policy, &subjects, options)).unwrap().report;
            let left: Vec<_> = report.rules().iter().map(RuleStatus::remaining).collect();
            assert_eq!(left, [2 - used(0, pair[0]) as u64, 3 - used(1, pair[1]) as u64]);
        }
    });
}

#[test]
fn calls_that_pay_in_units_charge_all_of_them_or_none() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(5, HOUR));
    let policy = policy.rule(Rule::sliding_window(6, HOUR).counting("tokens")).build().unwrap();
    explore(move || {
        let memory = memory();
        let threads = [(); 3].map(|()| {
            let (memory, policy) = (Arc::clone(&memory), policy.clone());
            thread::spawn(move || {
                let subject = subject(1);
                let call = UnitCall::new(&policy, &subject, 1, GroupCost::new(1, 2));
                (0..2).filter(|_| memory.outcome_in_units(call) == Some(Outcome::Admitted)).count()
            })
        });
        let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 3);
        let subjects = [subject(1); 2];
        let options = CallOptions { peek: true, report: true, ..CallOptions::PLAIN };
        let report = memory.decide(Call::new(&policy, &subjects, options)).unwrap().report;
        let left: Vec<_> = report.rules().iter().map(RuleStatus::remaining).collect();
        assert_eq!(left, [2, 0]);
    });
}

#[test]
fn a_refund_gives_back_what_was_charged_and_no_more() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(2, HOUR)).build().unwrap();
    explore(move || {
        let memory = memory();
        let threads = [(); 3].map(|()| {
            let (memory, policy) = (Arc::clone(&memory), policy.clone());
            thread::spawn(move || {
                let subjects = [subject(1)];
                let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
                let answer = memory.decide(call).unwrap();
                if answer.outcome == Outcome::Admitted {
                    assert!(memory.recount(call, &Recount::REFUND, &answer.at));
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let subjects = [subject(1)];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        assert_eq!((0..3).filter(|_| decide(&memory, call)).count(), 2);
    });
}
