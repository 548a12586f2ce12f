//! A brute-force proof of which rules can bind: small rules decide sequences of calls.

use proptest::prelude::*;

use super::*;
use crate::algorithm::Algorithm;
use crate::text::parse_rules;
use crate::validate::binding::{self, Supply};

/// A rule and its counted calls, written from the definitions of the algorithms.
struct Simulated<'a> {
    rule: &'a Rule,
    /// The time and the cost of each call.
    hits: Vec<(u64, u64)>,
    /// The tokens of a bucket multiplied by `per`, at the last hit.
    level: u64,
}

impl<'a> Simulated<'a> {
    fn new(rule: &'a Rule) -> Self {
        Self { rule, hits: Vec::new(), level: 0 }
    }

    fn per(&self) -> u64 {
        us(self.rule.per().unwrap())
    }

    fn weight(&self, start: i128) -> u64 {
        self.hits.iter().filter(|(at, _)| i128::from(*at) >= start).map(|(_, cost)| cost).sum()
    }

    fn level_at(&self, now: u64, bucket: &TokenBucket) -> u64 {
        let count = self.rule.count();
        match self.hits.last() {
            Some((last, _)) if now < last + us(bucket.reset_after_for(count)) => {
                (self.level + (now - last) * count).min(bucket.capacity_for(count) * self.per())
            }
            _ => bucket.initial_for(count) * self.per(),
        }
    }

    fn admits(&self, now: u64, cost: u64) -> bool {
        let count = self.rule.count();
        let per = self.per();
        match (self.rule.role(), self.rule.algorithm()) {
            (crate::algorithm::Role::Duplicate, _) => {
                let start = i128::from(now) - i128::from(per) + 1;
                (self.hits.iter().filter(|(at, _)| i128::from(*at) >= start).count() as u64) < count
            }
            (_, Algorithm::SlidingWindow { .. }) => self.weight(i128::from(now) - i128::from(per) + 1) + cost <= count,
            (_, Algorithm::FixedWindow { .. }) => {
                let mut opened: Option<u64> = None;
                for (at, _) in &self.hits {
                    opened = opened.filter(|opened| *at < opened + per).or(Some(*at));
                }
                let opened = opened.filter(|opened| now < opened + per).unwrap_or(now);
                self.weight(opened.into()) + cost <= count
            }
            (_, Algorithm::SlidingCounter { .. }) => {
                let slot = now - now % per;
                let current = self.weight(slot.into());
                let before = self.weight(i128::from(slot) - i128::from(per)) - current;
                let left = slot + per - now;
                before * left + (current + cost) * per <= count * per
            }
            (_, Algorithm::TokenBucket(bucket)) => cost * per <= self.level_at(now, bucket),
            _ => unreachable!("neither schedules nor concurrency are simulated"),
        }
    }

    fn count(&mut self, now: u64, cost: u64) {
        if let Algorithm::TokenBucket(bucket) = self.rule.algorithm() {
            self.level = self.level_at(now, bucket) - cost * self.per();
        }
        self.hits.push((now, cost));
    }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// Returns whether the second rule denies a call that the first one admits, if both decide these calls.
fn binds(stricter: &Rule, rule: &Rule, calls: impl IntoIterator<Item = (u64, u64)>) -> bool {
    let mut stricter = Simulated::new(stricter);
    let mut rule = Simulated::new(rule);
    for (now, cost) in calls {
        if !stricter.admits(now, cost) {
            continue;
        }
        if !rule.admits(now, cost) {
            return true;
        }
        stricter.count(now, cost);
        rule.count(now, cost);
    }
    false
}

/// Returns whether the second rule denies one of its calls that the first rule admits. The first rule counts all calls.
fn binds_within(stricter: &Rule, rule: &Rule, calls: impl IntoIterator<Item = ((u64, u64), bool)>) -> bool {
    let mut stricter = Simulated::new(stricter);
    let mut rule = Simulated::new(rule);
    for ((now, cost), is_counted) in calls {
        if !stricter.admits(now, cost) {
            continue;
        }
        if is_counted && !rule.admits(now, cost) {
            return true;
        }
        stricter.count(now, cost);
        if is_counted {
            rule.count(now, cost);
        }
    }
    false
}

/// Returns calls of equal cost that take all that a rule admits as early as possible, from `start` on.
fn greedy(start: u64, cost: u64) -> impl Iterator<Item = (u64, u64)> {
    (start..start + 80).flat_map(move |now| std::iter::repeat_n((now, cost), 12))
}

/// Windows and counts are small, so that most pairs of rules matter to each other.
fn bucket() -> impl Strategy<Value = Rule> {
    let parameters = (1_u64..8, 1_u64..12, 1_u64..10, 1_u64..10, prop::option::of(1_u64..40));
    parameters.prop_map(|(count, per, capacity, initial, reset_after)| {
        let us = Duration::from_micros;
        let bucket = TokenBucket::new(us(per)).with_capacity(capacity).with_initial(initial.min(capacity));
        let bucket = reset_after.map_or(bucket, |idle| bucket.with_reset_after(us(idle)));
        Rule::from_bucket(count, bucket)
    })
}

fn full_bucket() -> impl Strategy<Value = Rule> {
    (1_u64..8, 1_u64..12, 1_u64..10).prop_map(|(count, per, capacity)| {
        Rule::from_bucket(count, TokenBucket::new(Duration::from_micros(per)).with_capacity(capacity))
    })
}

fn window(new: fn(u64, Duration) -> Rule) -> impl Strategy<Value = Rule> {
    (1_u64..10, 1_u64..15).prop_map(move |(count, per)| new(count, Duration::from_micros(per)))
}

fn duplicate() -> impl Strategy<Value = Rule> {
    (1_u64..12).prop_map(|per| Rule::duplicate(Duration::from_micros(per)))
}

/// A rule that others may be compared with.
fn stricter() -> impl Strategy<Value = Rule> {
    prop_oneof![
        window(Rule::sliding_window),
        window(Rule::fixed_window),
        window(Rule::sliding_counter),
        duplicate(),
        bucket(),
        full_bucket(),
    ]
}

/// A rule with a count that is often great enough to be implied.
fn limit() -> impl Strategy<Value = Rule> {
    let great = |new: fn(u64, Duration) -> Rule| {
        (1_u64..60, 1_u64..15).prop_map(move |(count, per)| new(count, Duration::from_micros(per)))
    };
    prop_oneof![
        great(Rule::sliding_window),
        great(Rule::fixed_window),
        great(Rule::sliding_counter),
        great(Rule::token_bucket),
        bucket(),
    ]
}

fn costs() -> impl Strategy<Value = Costs> {
    prop_oneof![Just(Costs::Any), (1_u64..4).prop_map(Costs::Always)]
}

fn calls() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![3 => Just(0_u64), 3 => 1_u64..4, 1 => 1_u64..40];
    prop::collection::vec((gap, 1_u64..5), 1..60).prop_map(|calls| {
        let mut now = 0;
        let elapsed = |(gap, cost)| {
            now += gap;
            (now, cost)
        };
        calls.into_iter().map(elapsed).collect()
    })
}

fn implies(stricter: &Rule, rule: &Rule, costs: Costs) -> bool {
    Supply::from_rule(stricter, costs).is_some_and(|supply| supply.is_admitted_by(rule, costs))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_that_can_never_bind_admits_whatever_the_stricter_one_admits(
        stricter in stricter(), rule in limit(), costs in costs(), calls in calls(), start in 0_u64..15,
    ) {
        prop_assume!(implies(&stricter, &rule, costs));
        let cost = |cost| match costs { Costs::Always(always) => always, Costs::Any => cost, Costs::Recounted => 1 };
        let calls = calls.into_iter().map(|(now, any)| (now + start, cost(any)));
        prop_assert!(!binds(&stricter, &rule, calls), "{} / {}", stricter, rule);
        for any in 1..4 {
            prop_assert!(!binds(&stricter, &rule, greedy(start, cost(any))), "{} / {}", stricter, rule);
        }
    }

    #[test]
    fn a_rule_that_can_never_bind_admits_whatever_a_stricter_one_of_a_wider_subject_admits(
        stricter in stricter(), rule in limit(), costs in costs(), calls in calls(), start in 0_u64..15,
        counted in prop::collection::vec(prop::bool::weighted(0.7), 60),
    ) {
        prop_assume!(implies(&stricter, &rule, costs));
        let cost = |cost| match costs { Costs::Always(always) => always, Costs::Any => cost, Costs::Recounted => 1 };
        let calls = calls.into_iter().map(|(now, any)| (now + start, cost(any))).zip(counted);
        prop_assert!(!binds_within(&stricter, &rule, calls), "{} / {}", stricter, rule);
        // Calls of other subjects take everything first, so that the windows of the two rules open at different times.
        for others in 1..20 {
            let greedy = greedy(start, cost(1)).map(|(now, cost)| ((now, cost), now >= start + others));
            prop_assert!(!binds_within(&stricter, &rule, greedy), "{} / {}", stricter, rule);
        }
    }

    #[test]
    fn what_a_window_keeps_from_binding_is_denied_by_it_however_calls_are_settled(
        stricter in window(Rule::sliding_window),
        rule in prop_oneof![window(Rule::sliding_window), window(Rule::fixed_window)],
        calls in calls(), settled in prop::collection::vec(0_u64..30, 60),
    ) {
        prop_assume!(binding::implies(&stricter, &rule, Costs::Recounted));
        let (mut one, mut other) = (Simulated::new(&stricter), Simulated::new(&rule));
        for ((now, cost), used) in calls.into_iter().zip(settled) {
            if one.admits(now, cost) {
                prop_assert!(other.admits(now, cost), "{} / {}", stricter, rule);
                one.count(now, used);
                other.count(now, used);
            }
        }
    }

    #[test]
    fn a_window_that_can_bind_denies_a_call_that_the_stricter_rule_admits(
        stricter in prop_oneof![window(Rule::sliding_window), duplicate(), full_bucket()],
        rule in prop_oneof![window(Rule::sliding_window), window(Rule::fixed_window)],
        costs in costs(),
    ) {
        let cost = match costs { Costs::Always(cost) => cost, Costs::Any | Costs::Recounted => 1 };
        // A bucket that overflows although all whole calls are taken from it admits less than is computed.
        let overflows = |capacity| stricter.count() + cost * us(stricter.per().unwrap()) > capacity * us(stricter.per().unwrap());
        prop_assume!(!stricter.capacity().is_some_and(overflows));
        prop_assume!(Supply::from_rule(&stricter, costs).is_some() && !implies(&stricter, &rule, costs));
        prop_assert!(binds(&stricter, &rule, greedy(0, cost)), "{} / {}", stricter, rule);
    }
}

#[test]
fn two_windows_of_a_fixed_window_bind_what_admits_less_than_both() {
    let rules = parse_rules("10 per fixed 9us, 20 per 3us, 18 per 3us").unwrap();
    assert!(implies(&rules[0], &rules[1], Costs::Any) && !implies(&rules[0], &rules[2], Costs::Any));
    // One call opens a window, nine come at its end, and ten come when the next one opens.
    let calls = [(0, 1), (8, 9), (9, 10)];
    assert!(binds(&rules[0], &rules[2], calls) && !binds(&rules[0], &rules[1], calls));
}

#[test]
fn the_simulation_knows_the_algorithms() {
    let rules = parse_rules("2 per 3us, 2 per fixed 3us, about 2 per 3us, 2 per 3us bucket").unwrap();
    let expected = [&[0, 0, 3, 3, 6, 6][..], &[0, 0, 3, 3, 6, 6], &[0, 0, 5, 6], &[0, 0, 2, 3, 5, 6]];
    for (rule, expected) in rules.iter().zip(expected) {
        let mut simulated = Simulated::new(rule);
        for (now, cost) in greedy(0, 1).take_while(|(now, _)| *now < 7) {
            if simulated.admits(now, cost) {
                simulated.count(now, cost);
            }
        }
        assert_eq!(simulated.hits.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected, "{rule}");
    }
}
