//! The checks that every policy passes before it decides anything: one function, one check.

use std::time::Duration;

use crate::{Algorithm, Field, Role, Rule, RuleError, TokenBucket, format_duration};

/// The most rules of one policy.
pub const MAX_RULES: usize = 64;

/// The longest window: 3,660 days. Sums of times stay far below 2^53 microseconds, where Lua's numbers are exact.
pub const MAX_PER: Duration = Duration::from_secs(3_660 * 86_400);

/// The greatest count of an exact sliding window, which remembers every unit it admitted.
pub const MAX_SLIDING_COUNT: u64 = 1_000_000;

/// The greatest count of a sliding counter, 2^26: the product of two counts is exact.
pub const MAX_COUNTER_COUNT: u64 = 1 << 26;

/// The greatest integer that is exact in Lua, and so in every tally: 2^53 − 1.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// Finds every mistake in the rules of one policy.
///
/// # Errors
///
/// Returns all the mistakes, those about the policy first and the others in the order of the rules.
pub fn validate(rules: &[Rule]) -> Result<(), Vec<RuleError>> {
    let mut errors = Vec::new();
    errors.extend(check_number(rules));
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(check_name(index, rules));
        let mut alone = vec![check_count(rule), check_per(rule)];
        if let Algorithm::TokenBucket(bucket) = rule.algorithm() {
            alone.extend([check_capacity(bucket, rule), check_initial(bucket, rule), check_reset_after(bucket, rule)]);
        }
        let alone: Vec<_> = alone.into_iter().flatten().map(|mistake| mistake.at(index)).collect();
        // What is wrong by itself is not worth comparing with its neighbours.
        if alone.is_empty() {
            errors.extend(check_distinct(index, rules).or_else(|| check_can_bind(index, rules)));
        }
        errors.extend(alone);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Finds every mistake in the rules of a policy that counts several subjects: only rules of one subject are compared.
///
/// # Errors
///
/// As of [`validate`].
pub fn validate_by_subject<S: PartialEq>(rules: &[(S, Rule)]) -> Result<(), Vec<RuleError>> {
    let all: Vec<_> = rules.iter().map(|(_, rule)| rule.clone()).collect();
    if let Some(mistake) = check_number(&all) {
        return Err(vec![mistake]);
    }
    let mut errors = Vec::new();
    for (first, (subject, _)) in rules.iter().enumerate() {
        if rules[..first].iter().any(|(earlier, _)| earlier == subject) {
            continue;
        }
        let positions: Vec<_> = (first..rules.len()).filter(|&at| rules[at].0 == *subject).collect();
        let own: Vec<_> = positions.iter().map(|&at| all[at].clone()).collect();
        for mistake in validate(&own).err().into_iter().flatten() {
            let rule = mistake.rule.and_then(|at| positions.get(at).copied());
            errors.push(RuleError { rule, ..mistake });
        }
    }
    // A rejection names a rule, whatever subject that counts.
    for index in 0..all.len() {
        let is_told = |error: &RuleError| error.rule == Some(index) && error.field == Field::Name;
        if !errors.iter().any(is_told) {
            errors.extend(check_name(index, &all));
        }
    }
    errors.sort_by_key(RuleError::rule);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// A mistake in a rule by itself.
pub(crate) struct Mistake(Field, String);

impl Mistake {
    pub(crate) fn of(field: Field, message: impl Into<String>) -> Self {
        Self(field, message.into())
    }

    pub(crate) fn of_the_policy(self) -> RuleError {
        RuleError { rule: None, field: self.0, message: self.1 }
    }

    pub(crate) fn at(self, index: usize) -> RuleError {
        RuleError { rule: Some(index), field: self.0, message: self.1 }
    }
}

fn check_number(rules: &[Rule]) -> Option<RuleError> {
    let message = match rules.len() {
        0 => "a policy needs at least one rule, like `rule(count = 10, per = \"60s\")`".into(),
        1..=MAX_RULES => return None,
        number => format!("a policy has at most {MAX_RULES} rules, and this has {number}; split it up"),
    };
    Some(RuleError { rule: None, field: Field::Rule, message })
}

fn check_name(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let name = rules[index].name()?;
    let message = if name.is_empty() {
        "`name` of a rule must not be empty; leave it out, or write one, like `name = \"daily\"`".to_owned()
    } else if rules[..index].iter().any(|earlier| earlier.name() == Some(name)) {
        format!("two rules are named `{name}`; rename one, so that a rejection tells them apart")
    } else {
        return None;
    };
    Some(Mistake(Field::Name, message).at(index))
}

fn check_count(rule: &Rule) -> Option<Mistake> {
    let reason = match rule.algorithm() {
        Algorithm::SlidingWindow { .. } => "as it remembers every hit; use the algorithm `sliding_counter` for more",
        Algorithm::SlidingCounter { .. } => "so that its arithmetic stays exact; shorten `per`",
        // It depends on the other parts of the bucket, which are checked together.
        Algorithm::TokenBucket(_) => "",
        _ => "so that its arithmetic stays exact",
    };
    match (rule.count(), rule.greatest_count()) {
        (0, _) if !rule.is_varying() => {
            Some(Mistake::of(Field::Count, "`count` must be at least 1, like `count = 10`"))
        }
        (count, greatest) if count > greatest && !reason.is_empty() => {
            Some(Mistake::of(Field::Count, format!("`count` of this algorithm is at most {greatest}, {reason}")))
        }
        _ => None,
    }
}

/// The mistakes in a rule's times.
pub(crate) fn check_times(rule: &Rule) -> impl Iterator<Item = Mistake> {
    let reset_after = match rule.algorithm() {
        Algorithm::TokenBucket(bucket) => check_reset_after(bucket, rule),
        _ => None,
    };
    check_per(rule).into_iter().chain(reset_after)
}

fn check_per(rule: &Rule) -> Option<Mistake> {
    rule.per().and_then(|per| check_duration(Field::Per, "per", per))
}

pub(crate) fn check_duration(field: Field, name: &str, duration: Duration) -> Option<Mistake> {
    if duration.is_zero() {
        Some(Mistake::of(field, format!("`{name}` must be longer than zero, like `{name} = \"60s\"`")))
    } else if duration > MAX_PER {
        Some(Mistake::of(field, format!("`{name}` is at most 3660 days, like `{name} = \"24h\"`")))
    } else if !duration.subsec_nanos().is_multiple_of(1_000) {
        Some(Mistake::of(field, format!("`{name}` must be a whole number of microseconds")))
    } else {
        None
    }
}

fn check_capacity(bucket: &TokenBucket, rule: &Rule) -> Option<Mistake> {
    let field = if bucket.capacity_set().is_some() { Field::Capacity } else { Field::Count };
    if bucket.capacity_set() == Some(0) {
        return Some(Mistake::of(field, "`capacity` must be at least 1, like `capacity = 100`"));
    }
    // A count that varies is clamped to what is exact; there has to be something left.
    let count = if rule.is_varying() { 1 } else { rule.count() };
    (count > rule.greatest_count()).then(|| {
        let (capacity, remedy) =
            (bucket.capacity_or(count), "say the same rate with a smaller `count` and a shorter `per`");
        Mistake(field, format!("{capacity} tokens over this `per` are too many to count exactly; {remedy}"))
    })
}

fn check_initial(bucket: &TokenBucket, rule: &Rule) -> Option<Mistake> {
    let capacity = bucket.capacity_set().or((rule.count() > 0).then_some(rule.count()));
    match (bucket.initial_set()?, capacity) {
        (0, _) => Some(Mistake::of(
            Field::Initial,
            "`initial` must be at least 1: tokens flow in from the first admitted call on",
        )),
        (initial, Some(capacity)) if initial > capacity && capacity > 0 => {
            Some(Mistake::of(Field::Initial, format!("`initial` is at most the capacity, which is {capacity}")))
        }
        _ => None,
    }
}

fn check_reset_after(bucket: &TokenBucket, rule: &Rule) -> Option<Mistake> {
    match bucket.reset_after_set() {
        Some(reset_after) => check_duration(Field::ResetAfter, "reset_after", reset_after),
        None if bucket.fill_time(rule.count()) > MAX_PER => Some(Mistake::of(
            Field::Per,
            "the bucket takes more than 3660 days to fill; let more tokens in, hold fewer, or say `reset_after`",
        )),
        None => None,
    }
}

fn check_distinct(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let rule = &rules[index];
    rules[..index].iter().any(|earlier| same_window(earlier, rule)).then(|| {
        let window = rule
            .per()
            .map_or_else(|| "the same ticks".into(), |per| format!("the same window of {}", format_duration(per)));
        Mistake(Field::Per, format!("two rules count {window}; keep the stricter one")).at(index)
    })
}

fn check_can_bind(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let rule = &rules[index];
    if rule.role() != Role::Limit {
        return None;
    }
    let stricter = rules.iter().find(|other| *other != rule && at_least_as_strict(other, rule))?;
    let message = format!(
        "this rule can never bind: {} is at least as strict as {rule}; remove it, or {}",
        words(stricter),
        loosen(stricter),
    );
    Some(Mistake(Field::Rule, message).at(index))
}

fn same_window(one: &Rule, other: &Rule) -> bool {
    let same_algorithm = match (one.algorithm(), other.algorithm()) {
        (Algorithm::TokenBucket(one), Algorithm::TokenBucket(other)) => one.per() == other.per(),
        (one, other) => one == other,
    };
    one.role() == other.role() && same_algorithm
}

/// No more in a window that is no shorter: whatever `strict` admits, `rule` admits too.
///
/// Only an exact window says something of every window of its length, and so of those that another rule counts. Of counts
/// that vary nothing is known.
fn at_least_as_strict(strict: &Rule, rule: &Rule) -> bool {
    let windows = match (strict.algorithm(), rule.algorithm()) {
        (
            Algorithm::SlidingWindow { per: strict },
            Algorithm::SlidingWindow { per } | Algorithm::FixedWindow { per },
        ) => strict >= per,
        _ => false,
    };
    // A count of 0 is a mistake of its own.
    let known = !strict.is_varying() && !rule.is_varying() && strict.count() > 0;
    windows && known && strict.count() <= rule.count() && !same_window(strict, rule)
}

fn loosen(stricter: &Rule) -> &'static str {
    match stricter.role() {
        Role::Limit => "raise the other's `count`",
        Role::Duplicate => "that",
    }
}

fn words(rule: &Rule) -> String {
    match rule.role() {
        Role::Limit => rule.to_string(),
        Role::Duplicate => format!("`prevent_duplicate` ({rule})"),
    }
}

/// Returns the position of a rule that already keeps `rules[index]`, though over a shorter window.
///
/// `20 per 120s` beside `10 per 60s` is such a rule: harmless and sometimes clearer, so it is allowed.
#[must_use]
pub fn implied_by(rules: &[Rule], index: usize) -> Option<usize> {
    let Algorithm::SlidingWindow { per: long } = rules.get(index)?.algorithm() else { return None };
    let count = u128::from(rules.get(index)?.count());
    rules.iter().position(|other| {
        let Algorithm::SlidingWindow { per: short } = other.algorithm() else { return false };
        let alike = [other, &rules[index]].iter().all(|rule| rule.role() == Role::Limit && !rule.is_varying());
        alike && short < long && !short.is_zero() && windows(*long, *short) * u128::from(other.count()) <= count
    })
}

/// How many windows of length `short` it takes to cover one of length `long`.
fn windows(long: Duration, short: Duration) -> u128 {
    long.as_nanos().div_ceil(short.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliding(count: u64, secs: u64) -> Rule {
        Rule::sliding_window(count, Duration::from_secs(secs))
    }

    fn errors(rules: &[Rule]) -> Vec<(Option<usize>, Field, String)> {
        let errors = validate(rules).expect_err("the rules are mistaken");
        errors.into_iter().map(|e| (e.rule(), e.field(), e.to_string())).collect()
    }

    #[test]
    fn the_customers_own_rules_are_sound() {
        let rules = [Rule::duplicate(DUPLICATE_PER), sliding(10, 60), sliding(20, 120)];
        assert_eq!(validate(&rules), Ok(()));
    }

    #[test]
    fn no_rule_at_all_is_a_mistake_of_the_policy() {
        let found = errors(&[]);
        assert_eq!((found[0].0, found.len()), (None, 1));
        assert!(found[0].2.contains("at least one rule"));
    }

    #[test]
    fn a_policy_has_a_bounded_number_of_rules() {
        let rules: Vec<_> = (1..=65).map(|n| sliding(n, n)).collect();
        assert!(errors(&rules)[0].2.contains("at most 64 rules"));
        assert_eq!(validate(&rules[..64]), Ok(()));
    }

    #[test]
    fn every_mistake_is_found_at_once_and_at_its_place() {
        let rules = [sliding(0, 60), sliding(1, 0), sliding(MAX_SLIDING_COUNT + 1, 60)];
        let places: Vec<_> = errors(&rules).into_iter().map(|(rule, field, _)| (rule, field)).collect();
        assert_eq!(places, [(Some(0), Field::Count), (Some(1), Field::Per), (Some(2), Field::Count)]);
    }

    #[test]
    fn a_window_has_whole_microseconds_and_an_end() {
        let odd = Rule::sliding_window(1, Duration::from_nanos(1_500));
        assert!(errors(&[odd])[0].2.contains("whole number of microseconds"));
        let endless = Rule::sliding_window(1, MAX_PER + Duration::from_secs(1));
        assert!(errors(&[endless])[0].2.contains("3660 days"));
        assert_eq!(validate(&[Rule::sliding_window(1, MAX_PER)]), Ok(()));
    }

    #[test]
    fn two_rules_of_one_window_are_refused_at_the_second() {
        let found = errors(&[sliding(10, 60), sliding(20, 60)]);
        assert_eq!((found.len(), found[0].0, found[0].1), (1, Some(1), Field::Per));
        assert!(found[0].2.contains("same window of 1m"));
    }

    #[test]
    fn rules_of_several_subjects_are_compared_by_subject_and_named_as_one() {
        let rules = [("phone", sliding(10, 60)), ("ip", sliding(10, 60)), ("ip", sliding(9, 60).named("a"))];
        let places = |rules: &[(&str, Rule)]| -> Vec<_> {
            let errors = validate_by_subject(rules).err().into_iter().flatten();
            errors.map(|error| (error.rule(), error.field())).collect()
        };
        assert_eq!(places(&rules), [(Some(2), Field::Per)]);
        let named =
            [("phone", sliding(1, 1).named("a")), ("ip", sliding(1, 1).named("a")), ("ip", sliding(2, 2).named("a"))];
        assert_eq!(places(&named), [(Some(1), Field::Name), (Some(2), Field::Name)]);
        assert_eq!(places(&rules[..2]), []);
    }

    #[test]
    fn a_rule_that_can_never_bind_names_the_one_that_is_stricter() {
        let found = errors(&[sliding(20, 60), sliding(10, 120)]);
        assert_eq!((found.len(), found[0].0), (1, Some(0)));
        assert!(found[0].2.contains("10 per 2m is at least as strict as 20 per 1m"));
    }

    #[test]
    fn a_rule_that_admits_nothing_is_the_only_mistake_beside_sound_ones() {
        let found = errors(&[sliding(0, 120), sliding(10, 60), Rule::fixed_window(5, Duration::from_secs(60))]);
        assert_eq!((found.len(), found[0].0, found[0].1), (1, Some(0), Field::Count));
    }

    #[test]
    fn a_rule_within_the_duplicate_window_can_never_bind() {
        let found = errors(&[Rule::duplicate(DUPLICATE_PER), sliding(1, 3)]);
        assert!(found[0].2.contains("`prevent_duplicate` (1 per 5s) is at least as strict"));
        assert!(found[0].2.ends_with("remove it, or that"));
    }

    #[test]
    fn prevent_duplicate_keeps_its_meaning_beside_a_stricter_rule() {
        assert_eq!(validate(&[Rule::duplicate(DUPLICATE_PER), sliding(1, 60)]), Ok(()));
    }

    #[test]
    fn an_implied_rule_is_allowed_and_known() {
        let rules = [sliding(10, 60), sliding(20, 120), sliding(19, 121)];
        assert_eq!(validate(&rules[..2]), Ok(()));
        assert_eq!(implied_by(&rules, 1), Some(0));
        assert_eq!(implied_by(&rules, 2), None);
    }

    use crate::DUPLICATE_PER;

    fn bucket(count: u64, secs: u64) -> TokenBucket {
        TokenBucket::new(count, Duration::from_secs(secs))
    }

    #[test]
    fn a_bucket_is_checked_in_every_part() {
        let mistaken = [bucket(5, 1).capacity(0), bucket(5, 1).initial(0), bucket(5, 1).initial(6)];
        let fields = mistaken.map(|bucket| errors(&[bucket.into()])[0].1);
        assert_eq!(fields, [Field::Capacity, Field::Initial, Field::Initial]);
        let idle = bucket(5, 1).reset_after(Duration::ZERO);
        assert!(errors(&[idle.into()])[0].2.contains("`reset_after` must be longer than zero"));
        assert_eq!(validate(&[bucket(5, 1).capacity(100).initial(3).into()]), Ok(()));
    }

    #[test]
    fn a_bucket_whose_arithmetic_would_leave_the_exact_integers_is_refused_with_a_remedy() {
        let million_a_day = errors(&[Rule::token_bucket(1_000_000, Duration::from_secs(86_400))]);
        assert!(million_a_day[0].2.contains("a smaller `count` and a shorter `per`"));
        assert_eq!(validate(&[Rule::token_bucket(1_000_000, Duration::from_secs(3_600))]), Ok(()));
    }

    #[test]
    fn one_window_may_be_counted_by_different_algorithms() {
        let minute = Duration::from_secs(60);
        let rules = [Rule::sliding_counter(10, minute), Rule::fixed_window(10, minute), Rule::token_bucket(10, minute)];
        assert_eq!(validate(&rules), Ok(()));
    }

    #[test]
    fn an_exact_window_keeps_a_fixed_one_from_binding_but_not_the_other_way_round() {
        let minute = Duration::from_secs(60);
        assert!(errors(&[sliding(10, 60), Rule::fixed_window(10, minute)])[0].2.contains("can never bind"));
        assert_eq!(validate(&[Rule::fixed_window(10, 2 * minute), sliding(20, 60)]), Ok(()));
    }

    #[test]
    fn only_rules_of_one_subject_are_compared() {
        let by = |subject, count, secs| (subject, sliding(count, secs));
        assert_eq!(validate_by_subject(&[by("phone", 10, 60), by("network", 10, 60), by("network", 5, 30)]), Ok(()));
        let mistaken = [by("phone", 10, 60), by("network", 0, 60), by("phone", 20, 60), by("network", 5, 90)];
        let places: Vec<_> = validate_by_subject(&mistaken).unwrap_err().iter().map(RuleError::rule).collect();
        assert_eq!(places, [Some(1), Some(2)]);
        assert_eq!(validate_by_subject::<()>(&[]).unwrap_err()[0].rule(), None);
    }

    #[test]
    fn a_count_that_varies_is_compared_with_nothing() {
        let minute = Duration::from_secs(60);
        let rules = [sliding(20, 60), sliding(1, 120).varying(), sliding(1, 30).varying(), sliding(10, 10)];
        assert_eq!(validate(&rules), Ok(()));
        assert_eq!((0..4).find_map(|index| implied_by(&rules, index)), None);
        assert_eq!(validate(&[bucket(1, 60).initial(5).into_rule().varying()]), Ok(()));
        assert_eq!(errors(&[sliding(1, 60), Rule::sliding_window(9, minute).varying()])[0].1, Field::Per);
        assert_eq!(errors(&[bucket(1, 86_400).capacity(MAX_EXACT).into_rule().varying()])[0].1, Field::Capacity);
    }

    #[test]
    fn every_count_up_to_the_greatest_of_a_bucket_is_sound() {
        for bucket in [bucket(1, 60), bucket(1, 86_400), bucket(1, 1).capacity(100)] {
            let rule = bucket.into_rule();
            let greatest = rule.greatest_count();
            assert_eq!(validate(&[rule.clone().with_count(greatest)]), Ok(()));
            assert!(errors(&[rule.with_count(greatest + 1)])[0].2.contains("too many to count exactly"));
        }
    }

    #[test]
    fn the_names_of_two_rules_differ() {
        let found = errors(&[sliding(10, 60).named("a"), sliding(20, 120).named("a"), sliding(30, 240).named("")]);
        assert_eq!(
            found.iter().map(|(rule, field, _)| (*rule, *field)).collect::<Vec<_>>(),
            [(Some(1), Field::Name), (Some(2), Field::Name)]
        );
        assert_eq!(validate(&[sliding(10, 60).named("a"), sliding(20, 120).named("b")]), Ok(()));
    }

    #[test]
    fn a_bucket_without_a_count_is_told_so_once() {
        assert_eq!(errors(&[bucket(0, 1).initial(3).into()]).len(), 1);
    }

    #[test]
    fn each_algorithm_has_its_greatest_count() {
        let minute = Duration::from_secs(60);
        assert!(errors(&[Rule::sliding_counter(MAX_COUNTER_COUNT + 1, minute)])[0].2.contains("67108864"));
        assert!(errors(&[Rule::fixed_window(MAX_EXACT + 1, minute)])[0].2.contains("9007199254740991"));
        assert_eq!(validate(&[Rule::sliding_counter(MAX_COUNTER_COUNT, MAX_PER)]), Ok(()));
        assert_eq!(validate(&[Rule::fixed_window(MAX_EXACT, MAX_PER)]), Ok(()));
    }
}
