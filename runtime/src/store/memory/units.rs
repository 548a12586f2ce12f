//! Calls that pay in units, of one subject: all its tallies are in one entry, under one lock.

use super::Memory;
use super::tally::GroupTallies;
use super::trace::Left;
use crate::call::{TallyId, UnitCall};
use crate::observe::count_early_denial;
use crate::store::answer::Outcome;
use crate::store::outcome_builder::OutcomeBuilder;

impl Memory {
    /// Decides a call whose groups have their tallies in one entry; `None` if there is no room for a new subject.
    pub(crate) fn outcome_in_units(&self, call: UnitCall<'_>) -> Option<Outcome> {
        let groups = call.policy.groups();
        let id = TallyId { group: groups.first()?, subject: call.subject };
        let hash = id.hash(&self.seed);
        let mut shard = self.lock(self.shard_of(hash));
        let (place, trace) = shard.place_and_trace(hash, id);
        let now_us = self.clock.now_us();
        let tally = place.tally(now_us).ok()?;
        // Most calls are decided by windows alone, and admitted.
        if tally.count_in_windows(groups, call, now_us) {
            return Some(Outcome::Admitted);
        }
        Some(decide(tally.of_several(groups, Left { trace, hash, now_us }), call, now_us))
    }
}

/// Counts a call in the tallies of all its groups, or in none.
#[inline(never)]
fn decide(mut tallies: GroupTallies<'_>, call: UnitCall<'_>, mut now_us: u64) -> Outcome {
    // If a tally moves the time forward, all are asked as of the later time.
    tallies.for_each(|group, tally| now_us = tally.settle_time(group, now_us));
    let (mut builder, mut first, mut counts_others) = (OutcomeBuilder::new(), 0, false);
    tallies.for_each(|group, tally| {
        tally.ask(group, first, call.needed_of(group), now_us, &mut builder);
        first += group.rules.len();
        counts_others |= tally.counts_others();
    });
    let outcome = builder.build();
    if counts_others && matches!(outcome, Outcome::Denied { .. }) && admit_without_others(&mut tallies, call, now_us) {
        count_early_denial();
    }
    tallies.for_each(|group, tally| match (outcome, call.charged_to(group)) {
        (Outcome::Admitted, charged @ 1..) => tally.charge(group, charged, now_us),
        (Outcome::Denied { .. }, _) => tally.deny(group, None, now_us),
        _ => {}
    });
    outcome.with_position(call.policy)
}

/// Whether all tallies would admit a call that was denied, without what others have left.
#[cold]
fn admit_without_others(tallies: &mut GroupTallies<'_>, call: UnitCall<'_>, now_us: u64) -> bool {
    let mut all_admit = true;
    tallies.for_each(|group, tally| all_admit &= tally.admits_without_others(group, call.needed_of(group), now_us));
    all_admit
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::time::Duration;

    use tallygate_rules::{Ban, Replacement, Rule, TokenBucket};

    use crate::call::{Call, CallOptions, UnitCall};
    use crate::clock::Clock;
    use crate::decision::RuleStatus;
    use crate::policy::{GroupCost, Policy, SubjectCost};
    use crate::store::{Memory, Outcome};
    use crate::subject::{Subject, SubjectKey};

    const HOUR: Duration = Duration::from_secs(3_600);

    fn policy(rules: impl IntoIterator<Item = Rule>) -> Policy {
        Policy::builder("p").rules(rules).build().unwrap()
    }

    fn window(count: u64) -> Rule {
        Rule::sliding_window(count, HOUR)
    }

    fn tokens(count: u64) -> Rule {
        window(count).counting("tokens")
    }

    fn bytes(count: u64) -> Rule {
        window(count).counting("bytes")
    }

    fn subject(name: &str) -> SubjectKey {
        Subject::of(name).key()
    }

    /// Decides a call that costs so much in a unit.
    fn outcome(memory: &Memory, policy: &Policy, subject: &SubjectKey, unit: &str, cost: u64) -> Outcome {
        let named = GroupCost::new(policy.group_of_unit(unit).unwrap(), cost);
        memory.outcome_in_units(UnitCall::new(policy, subject, 1, named)).unwrap()
    }

    fn remaining(memory: &Memory, policy: &Policy, subject: SubjectKey) -> Vec<u64> {
        let (subjects, options) = (vec![subject; policy.groups().len()], CallOptions::PLAIN);
        let options = CallOptions { peek: true, report: true, ..options };
        let report = memory.decide(Call::new(policy, &subjects, options)).unwrap().report;
        report.rules().iter().map(RuleStatus::remaining).collect()
    }

    /// Plays a test up to three times, each with other hashes: where there are few places, two keys have the same mark in one
    /// of 16,384 cases.
    fn try_three_times(play: fn()) {
        if (1..3).all(|_| catch_unwind(play).is_err()) {
            play();
        }
    }

    #[test]
    fn the_units_of_a_subject_take_one_place_and_leave_a_trace_together() {
        try_three_times(|| {
            let (policy, memory) = (policy([window(9), tokens(20)]), Memory::new(Clock::tokio(), 1));
            let call = |name| outcome(&memory, &policy, &subject(name), "tokens", 10);
            assert_eq!(call("a"), Outcome::Admitted);
            assert_eq!(call("b"), Outcome::Admitted, "it takes the place of the other subject");
            assert_eq!(call("a"), Outcome::Admitted);
            assert!(matches!(call("a"), Outcome::Denied { rule: 1, .. }));
            let left = [subject("a"), subject("b")].map(|name| remaining(&memory, &policy, name));
            assert_eq!(left, [[7, 0], [8, 10]]);
        });
    }

    #[test]
    fn a_subject_with_a_denied_unit_that_is_replaced_stays_denied() {
        try_three_times(|| {
            let (policy, memory) = (policy([window(9), tokens(1)]), Memory::new(Clock::tokio(), 1));
            assert_eq!(outcome(&memory, &policy, &subject("a"), "tokens", 1), Outcome::Admitted);
            let other = subject("b");
            let call = UnitCall::new(&policy, &other, 1, GroupCost::new(1, 1));
            assert_eq!(memory.outcome_in_units(call), Some(Outcome::Admitted));
            assert!(matches!(outcome(&memory, &policy, &subject("a"), "tokens", 1), Outcome::Denied { rule: 1, .. }));
        });
    }

    #[test]
    fn the_end_of_a_ban_says_how_long_what_was_left_of_a_unit_may_deny_the_subject() {
        try_three_times(|| {
            let ban = Ban::new(9, HOUR, HOUR);
            let policy = Policy::builder("p").rules([window(9), tokens(1)]).ban(ban).build().unwrap();
            let memory = Memory::new(Clock::tokio(), 1);
            let (alice, bob) = ([subject("alice"); 2], [subject("bob"); 2]);
            let costs = |calls| [if calls { SubjectCost::Calls } else { SubjectCost::Unit(0) }, SubjectCost::Unit(1)];
            let call = |subjects| Call::new(&policy, subjects, CallOptions::PLAIN);
            assert_eq!(memory.decide(call(&alice[..]).with_costs(&costs(false))).unwrap().outcome, Outcome::Admitted);
            assert_eq!(memory.ban(call(&alice), Duration::ZERO).unwrap(), None);
            assert_eq!(memory.decide(call(&bob[..]).with_costs(&costs(true))).unwrap().outcome, Outcome::Admitted);
            let left = memory.ban(call(&alice), Duration::ZERO).unwrap().unwrap();
            assert!(left > HOUR / 2, "{left:?}");
        });
    }

    #[test]
    fn a_few_new_subjects_replace_each_other_and_none_that_is_used_more() {
        let (policy, memory) = (policy([window(100), tokens(100)]), Memory::new(Clock::tokio(), 4));
        let call = |name: &str, tokens| outcome(&memory, &policy, &subject(name), "tokens", tokens);
        let busy = ["a", "b", "c"];
        // As a trace says too much of 65, it shows who has returned.
        for name in busy {
            assert_eq!(call(name, 65), Outcome::Admitted);
        }
        for number in 0..10 {
            assert_eq!(call(&format!("new {number}"), 1), Outcome::Admitted);
        }
        assert_eq!(busy.map(|name| remaining(&memory, &policy, subject(name))), [[99, 35]; 3]);
    }

    #[test]
    fn versions_of_a_policy_find_the_counts_of_each_unit() {
        let (memory, alice) = (Memory::new(Clock::tokio(), 9), subject("alice"));
        assert_eq!(memory.outcome(&policy([window(9)]), &alice, 2), Some(Outcome::Admitted));
        let [one, other] = [policy([window(9), tokens(9), bytes(9)]), policy([bytes(9), window(9), tokens(9)])];
        assert_eq!(outcome(&memory, &one, &alice, "tokens", 3), Outcome::Admitted);
        assert_eq!(outcome(&memory, &other, &alice, "bytes", 4), Outcome::Admitted);
        assert_eq!(outcome(&memory, &one, &alice, "tokens", 1), Outcome::Admitted);
        assert_eq!(remaining(&memory, &one, alice), [4, 5, 5]);
        assert_eq!(remaining(&memory, &other, alice), [5, 4, 5]);
        assert_eq!(
            remaining(&memory, &policy([bytes(9)]), alice),
            [9],
            "without a rule on calls, it has another entry"
        );
    }

    #[test]
    fn policies_of_units_alone_share_them_in_whatever_order_they_are_declared() {
        let (memory, alice) = (Memory::new(Clock::tokio(), 9), subject("alice"));
        let chat = policy([bytes(9), tokens(9)]);
        assert_eq!(outcome(&memory, &chat, &alice, "tokens", 3), Outcome::Admitted);
        for other in [policy([tokens(9)]), policy([tokens(9), bytes(9)])] {
            assert_eq!(remaining(&memory, &other, alice)[0], 6);
        }
    }

    #[test]
    fn overrides_of_the_windows_of_calls_find_the_counts_of_each_unit() {
        let (memory, alice) = (Memory::new(Clock::tokio(), 9), subject("alice"));
        let own = policy([window(9), tokens(9)]);
        let calls = |hours| Rule::sliding_window(9, hours * HOUR);
        let unit = || Rule::sliding_window(9, 2 * HOUR).counting("tokens");
        let replace =
            |policy: &Policy, rules: Vec<Rule>| policy.with_replacement(None, &Replacement::All(rules)).unwrap();
        let first = replace(&own, vec![calls(2), unit()]);
        let subjects = [alice; 2];
        let costs = [SubjectCost::Calls, SubjectCost::Unit(3)];
        let call = Call::new(&first, &subjects, CallOptions::PLAIN).with_costs(&costs);
        assert_eq!(memory.decide(call).unwrap().outcome, Outcome::Admitted);
        let second = replace(&own, vec![calls(3), unit()]);
        for other in [&second, &replace(&own, vec![unit()]), &replace(&first, vec![calls(4)])] {
            assert_eq!(remaining(&memory, other, alice), [9, 6]);
        }
        memory.reset(Call::new(&second, &subjects, CallOptions::PLAIN));
        assert_eq!(remaining(&memory, &first, alice), [8, 9]);
    }

    #[test]
    fn a_denial_by_a_unit_in_which_nothing_counts_keeps_no_subject() {
        let (policy, memory) = (policy([window(9), tokens(1)]).with_counts([9, 0]), Memory::new(Clock::tokio(), 1));
        let call = |name, tokens| outcome(&memory, &policy, &subject(name), "tokens", tokens);
        assert!(matches!(call("a", 1), Outcome::Denied { rule: 1, .. }));
        assert_eq!(call("a", 0), Outcome::Admitted);
        assert_eq!(call("b", 0), Outcome::Admitted, "it takes the place of the other subject");
    }

    #[test]
    fn a_reset_unit_leaves_the_others() {
        let (memory, alice) = (Memory::new(Clock::tokio(), 9), subject("alice"));
        let policy = policy([window(9), tokens(9)]);
        assert_eq!(outcome(&memory, &policy, &alice, "tokens", 3), Outcome::Admitted);
        let subjects = [alice; 2];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        memory.reset(call.part(1));
        assert_eq!(remaining(&memory, &policy, alice), [8, 9]);
        assert_eq!(outcome(&memory, &policy, &alice, "tokens", 3), Outcome::Admitted);
        memory.reset(call.part(0));
        assert_eq!(remaining(&memory, &policy, alice), [9, 6]);
        memory.reset(call);
        assert_eq!(remaining(&memory, &policy, alice), [9, 9]);
        assert_eq!(format!("{memory:?}"), "Memory { tallies: 0, .. }");
    }

    #[test]
    fn a_call_of_cost_0_is_denied_while_more_is_used_than_the_count() {
        for rule in [tokens(7), Rule::fixed_window(7, HOUR).counting("tokens")] {
            let (memory, alice, open) = (Memory::new(Clock::tokio(), 9), subject("alice"), policy([rule]));
            assert_eq!(outcome(&memory, &open, &alice, "tokens", 1), Outcome::Admitted);
            assert!(matches!(outcome(&memory, &open.with_counts([0]), &alice, "tokens", 0), Outcome::Denied { .. }));
        }
    }

    #[test]
    fn calls_under_a_bucket_are_counted_beside_units_that_came_first() {
        let (memory, alice) = (Memory::new(Clock::tokio(), 9), subject("alice"));
        let bucket = || Rule::from_bucket(5, TokenBucket::new(HOUR));
        let policy = policy([bucket(), tokens(9)]);
        let subjects = [alice; 2];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        assert_eq!(memory.decide(call.part(1)).unwrap().outcome, Outcome::Admitted);
        assert_eq!(outcome(&memory, &policy, &alice, "tokens", 3), Outcome::Admitted);
        assert_eq!(remaining(&memory, &policy, alice), [4, 5]);
    }
}
