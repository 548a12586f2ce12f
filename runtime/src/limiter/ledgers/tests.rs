//! Which subjects have a ledger when there are more than there is room for.

use std::time::Duration;

use super::*;
use tallygate_rules::Rule;

use crate::call::CallOptions;
use crate::decision::{AdmittedAt, Report};
use crate::policy::Policy;
use crate::subject::{Subject, SubjectKey};

const FLOOD: usize = 2 * SHARDS * MOST_PER_SHARD;

fn policy(name: &'static str) -> Policy {
    Policy::builder(name).rule(Rule::sliding_window(1_000, Duration::from_secs(60))).build().unwrap()
}

fn subject(number: usize) -> [SubjectKey; 1] {
    [Subject::of(number).key()]
}

fn call<'a>(policy: &'a Policy, subject: &'a [SubjectKey]) -> Call<'a> {
    Call::new(policy, subject, CallOptions::PLAIN)
}

fn take(ledgers: &Ledgers, policy: &Policy, number: usize) {
    ledgers.take(call(policy, &subject(number)), Ahead::new(Duration::from_secs(10)));
}

fn has(ledgers: &Ledgers, policy: &Policy, number: usize) -> bool {
    ledgers.with(call(policy, &subject(number)), |_| ()).is_some()
}

fn number_of(ledgers: &Ledgers) -> usize {
    ledgers.shards.iter().map(|shard| read(shard).ledgers.len()).sum()
}

#[test]
fn a_flood_of_one_policy_takes_the_place_of_no_other() {
    let (ledgers, flooding, calm) = (Ledgers::new(Clock::tokio()), policy("p"), policy("calm"));
    (0..200).for_each(|number| take(&ledgers, &calm, number));
    (0..FLOOD).for_each(|number| take(&ledgers, &flooding, number));
    assert_eq!(number_of(&ledgers), SHARDS * MOST_PER_SHARD);
    (200..400).for_each(|number| take(&ledgers, &calm, number));
    (0..FLOOD).for_each(|number| take(&ledgers, &flooding, number));
    assert!((0..400).all(|number| has(&ledgers, &calm, number)));
    assert_eq!(number_of(&ledgers), SHARDS * MOST_PER_SHARD);
    let subject = subject(0);
    ledgers.end(call(&calm, &subject));
    for shard in &ledgers.shards {
        let shard = read(shard);
        let counted =
            [&flooding, &calm].map(|policy| shard.population.count(Inhabitant::of(&policy.groups()[0].segment)));
        assert_eq!(counted.iter().sum::<usize>(), shard.ledgers.len());
    }
}

#[test]
fn a_subject_from_which_much_was_taken_ahead_keeps_its_place_before_one_that_only_called() {
    let (ledgers, flooding, calm) = (Ledgers::new(Clock::tokio()), policy("p"), policy("calm"));
    take(&ledgers, &flooding, 0);
    let part = Arc::new(Part::new(100, u64::MAX, AdmittedAt::Once(0), Report::default()));
    ledgers.with(call(&flooding, &subject(0)), |ledger| ledger.add(part, 0, 0)).unwrap();
    (0..FLOOD).for_each(|number| take(&ledgers, &flooding, number));
    (0..500).for_each(|number| take(&ledgers, &calm, number));
    assert!((0..500).all(|number| has(&ledgers, &calm, number)));
    assert!(has(&ledgers, &flooding, 0));
}
