//! Rules that can bind beside others, and rules that cannot.

use super::*;

const ONE: Costs = Costs::Always(1);

/// Returns the position of the only mistaken rule, and the message.
#[track_caller]
fn never_binds(rules: &str, costs: Costs) -> (usize, String) {
    let rules = crate::text::parse_rules(rules).unwrap();
    let errors = super::super::validate(&rules, costs).expect_err("a rule can never bind");
    let texts: Vec<_> = errors.iter().map(|error| (error.position().unwrap(), error.to_string())).collect();
    let [(position, text)] = &texts[..] else { panic!("{texts:?}") };
    let text = text.strip_prefix("this rule can never bind: ").unwrap();
    (*position, text.to_owned())
}

#[track_caller]
fn assert_sound(rules: &str, costs: Costs) {
    let rules = crate::text::parse_rules(rules).unwrap();
    assert_eq!(super::super::validate(&rules, costs), Ok(()));
}

#[test]
fn the_error_of_a_rule_that_can_never_bind_names_the_stricter_one() {
    let text = "`10 per 2m` admits at most 10 per 1m; remove it, or raise the other's `count`";
    assert_eq!(never_binds("20 per 1m, 10 per 2m", Costs::Any), (0, text.to_owned()));
    let text = "`10 per 1m` is at least as strict as `10 per fixed 1m`; remove it, or raise the other's `count`";
    assert_eq!(never_binds("10 per 1m as a, 10 per fixed 1m as b", Costs::Any), (1, text.to_owned()));
}

#[test]
fn a_rule_within_the_window_of_prevent_duplicate_never_binds_for_calls_of_cost_one() {
    let text = "`prevent_duplicate per 5s` admits at most 1 per 3s; remove it";
    assert_eq!(never_binds("prevent_duplicate per 5s, 1 per 3s", ONE).1, text);
}

#[test]
fn a_rule_that_admits_more_than_prevent_duplicate_does_never_binds_for_calls_of_cost_one() {
    let text = "`prevent_duplicate per 5s` admits at most 12 per 1m; remove it, or lower its `count`";
    assert_eq!(never_binds("prevent_duplicate per 5s, 20 per 60s", ONE).1, text);
    assert_eq!(never_binds("prevent_duplicate per 5s, 12 per fixed 60s", ONE).1, text);
    assert_sound("prevent_duplicate per 5s, 11 per 60s", ONE);
    assert_sound("prevent_duplicate per 5s, 12 per 60001ms", ONE);
    never_binds("prevent_duplicate per 5s, 12 per 59999ms", ONE);
}

#[test]
fn the_cost_of_every_call_counts_beside_prevent_duplicate() {
    assert_sound("prevent_duplicate per 5s, 35 per 60s", Costs::Always(3));
    never_binds("prevent_duplicate per 5s, 36 per 60s", Costs::Always(3));
}

#[test]
fn beside_prevent_duplicate_any_rule_can_bind_if_calls_may_have_any_cost() {
    assert_sound("prevent_duplicate per 5s, 20 per 60s", Costs::Any);
    assert_sound("prevent_duplicate per 5s, 1 per 3s", Costs::Any);
    assert_sound("prevent_duplicate per 5s, 100 per 1s burst 100", Costs::Any);
}

#[test]
fn prevent_duplicate_is_never_a_mistake_beside_a_stricter_rule() {
    assert_sound("prevent_duplicate per 5s, 1 per 60s", ONE);
}

#[test]
fn a_rule_that_admits_more_than_a_bucket_does_never_binds() {
    let text = "`1 per 1s bucket` admits at most 86400 per 1d; remove it, or raise the other's `count`";
    assert_eq!(never_binds("1 per 1s bucket, 100000 per 1d", Costs::Any).1, text);
    never_binds("1 per 1s bucket, 86400 per 1d", Costs::Any);
    assert_sound("1 per 1s bucket, 86399 per 1d", Costs::Any);
    never_binds("1 per 1s burst 11, 70 per 1m", Costs::Any);
    assert_sound("1 per 1s burst 12, 70 per 1m", Costs::Any);
}

#[test]
fn a_bucket_that_is_full_after_a_short_time_without_calls_bounds_no_window() {
    assert_sound("1 per 1s burst 10 reset_after 1s, 100 per 1m", Costs::Any);
    never_binds("1 per 1s burst 10 reset_after 10s, 100 per 1m", Costs::Any);
}

#[test]
fn a_bucket_that_holds_and_takes_more_than_another_rule_admits_never_binds() {
    never_binds("10 per 1m, 10 per 1m burst 10", Costs::Any);
    assert_sound("10 per 1m, 9 per 1m burst 10", Costs::Any);
    assert_sound("10 per 1m, 10 per 1m burst 9", Costs::Any);
    assert_sound("10 per 1m, 10 per 1m burst 10 initial 9", Costs::Any);
    never_binds("1 per 1s burst 10, 100 per 1m burst 10", Costs::Any);
    never_binds("prevent_duplicate per 5s, 1 per 5s bucket", ONE);
    assert_sound("prevent_duplicate per 5s, 1 per 5001ms bucket", ONE);
}

#[test]
fn a_sliding_counter_that_admits_a_burst_and_the_flow_of_a_slot_never_binds() {
    never_binds("10 per 1h, about 11 per 1m", Costs::Any);
    never_binds("10 per 1h, about 10 per 1m", Costs::Any);
    never_binds("10 per 1m, about 20 per 1m", Costs::Any);
    assert_sound("10 per 1m, about 19 per 1m", Costs::Any);
    never_binds("1 per 1s burst 10, about 70 per 1m", Costs::Any);
    assert_sound("1 per 1s burst 10, about 69 per 1m", Costs::Any);
    never_binds("prevent_duplicate per 5s, about 13 per 1m", ONE);
}

#[test]
fn a_fixed_window_and_a_counter_admit_no_more_than_two_of_their_windows_at_once() {
    for stricter in ["10 per fixed 2m", "about 10 per 2m"] {
        let most =
            |most: u32| format!("`{stricter}` admits at most {most} per 1m; remove it, or raise the other's `count`");
        assert_eq!(never_binds(&format!("{stricter}, 20 per 60s"), Costs::Any), (1, most(20)));
        assert_eq!(never_binds(&format!("20 per fixed 60s, {stricter}"), Costs::Any), (0, most(20)));
        assert_sound(&format!("{stricter}, 19 per 60s"), Costs::Any);
        never_binds(&format!("{stricter}, 30 per 240s"), Costs::Any);
        assert_sound(&format!("{stricter}, 29 per 240s"), Costs::Any);
        never_binds(&format!("{stricter}, 10 per 2m burst 20"), Costs::Any);
        assert_sound(&format!("{stricter}, 10 per 2m burst 19"), Costs::Any);
        never_binds(&format!("{stricter}, about 25 per 1m"), Costs::Any);
    }
    never_binds("10 per fixed 1m, about 30 per 1m", Costs::Any);
    assert_sound("10 per fixed 1m, 10 per 30s", Costs::Any);
    assert_sound("10 per fixed 1m, 10 per fixed 30s", Costs::Any);
}

#[cfg(feature = "cron")]
#[test]
fn a_schedule_whose_ticks_are_far_apart_is_compared() {
    let text = "`10 per \"@daily\" UTC` admits at most 20 per 1m; remove it, or raise the other's `count`";
    assert_eq!(never_binds("10 per @daily, 20 per 60s", Costs::Any), (1, text.to_owned()));
    assert_sound("10 per @daily, 19 per 60s", Costs::Any);
    assert_sound("10 per @hourly, 20 per 2h", Costs::Any);
    let text = "`1 per 1s bucket` admits at most 86400 per 1d; remove it, or raise the other's `count`";
    assert_eq!(never_binds("1 per 1s bucket, 86400 per @daily", Costs::Any), (1, text.to_owned()));
    assert_sound("1 per 1s bucket, 86399 per @daily", Costs::Any);
    never_binds("5 per fixed 1h, 10 per \"0 0 * * * *\"", Costs::Any);
    never_binds("5 per \"0 0 * * * *\", 240 per @daily", Costs::Any);
    // Clocks change, and months differ in length.
    assert_sound("10 per \"0 0 0 * * *\" Europe/Berlin, 20 per 60s", Costs::Any);
    assert_sound("1 per 1s bucket, 200000 per \"0 0 0 * * *\" Europe/Berlin", Costs::Any);
    assert_sound("1 per 1s bucket, 200000 per @weekly", Costs::Any);
    // The second rule states the limit of a longer window, a day, which is allowed.
    assert_sound("10 per 60s, 20000 per @daily", Costs::Any);
}

#[test]
fn calls_that_may_be_settled_beyond_their_cost_can_bind_what_only_counts_longer() {
    for rules in [
        "1 per 1s bucket, 86400 per 1d",
        "10 per fixed 2m, 20 per 60s",
        "10 per 2m, about 20 per 1m",
        "10 per 1m, 10 per 1m burst 10",
        "prevent_duplicate per 5s, 12 per 60s",
    ] {
        assert_sound(rules, Costs::Recounted);
    }
    never_binds("20 per 1m, 10 per 2m", Costs::Recounted);
    never_binds("10 per 1m, 10 per fixed 1m", Costs::Recounted);
    assert_sound("10 per 1m, 10 per fixed 61s", Costs::Recounted);
}

/// Validates rules, each with its key. The first key is that of the main subject.
fn keyed(rules: &[(&str, &str)], costs: Costs) -> Vec<(usize, String)> {
    let counted = rules.iter().enumerate().map(|(at, &(key, rule))| {
        let rule: Rule = rule.parse().unwrap();
        (CountedSubject::with_key((at > 0).then_some(key), key), rule)
    });
    let rules: Vec<_> = counted.collect();
    let errors = super::super::validate_by_subject(&rules, costs).err().into_iter().flatten();
    errors.map(|error| (error.position().unwrap(), error.to_string())).collect()
}

#[test]
fn a_rule_never_binds_beside_one_that_admits_no_more_to_a_wider_subject() {
    let text = "this rule can never bind: `5 per 1m` counts all calls and is at least as strict as `5 per 1m` for the \
                calls of each `{phone}`; remove it, or raise the other's `count`";
    assert_eq!(keyed(&[("{phone}", "5 per 1m"), ("", "5 per 1m")], ONE), [(0, text.to_owned())]);
    let text = "this rule can never bind: `5 per 1m` counts the calls of each `{a}` and admits at most 10 per 2m; remove \
                it, or raise the other's `count`";
    // On one subject, this rule would be allowed, because it states the limit of a longer window.
    assert_eq!(keyed(&[("{a}", "5 per 1m"), ("{a}:{b}", "10 per 2m")], ONE), [(1, text.to_owned())]);
    assert_eq!(keyed(&[("{a}:{b}", "10 per 2m"), ("{a}", "5 per 1m")], Costs::Any), [(0, text.to_owned())]);
    for sound in [
        [("{a}:{b}", "4 per 1m"), ("{a}", "5 per 1m")],
        [("{a}", "10 per 1m"), ("{b}", "5 per 1m")],
        [("{a}", "5 per 1m"), ("", "10 per 1m")],
        // The windows of the two rules open at different times.
        [("{a}", "5 per fixed 1m"), ("", "5 per fixed 1m")],
        [("{a}", "5 concurrent lease 60s"), ("", "5 concurrent lease 30s")],
    ] {
        assert_eq!(keyed(&sound, ONE), [], "{sound:?}");
    }
}

#[test]
fn a_limit_on_concurrent_calls_never_binds_beside_one_of_a_wider_subject() {
    let text = "this rule can never bind: `5 concurrent lease 30s` counts all calls and is at least as strict as \
                `5 concurrent lease 30s` for the calls of each `{a}`; remove it, or raise the other's `limit`";
    let rules = [("{a}", "5 concurrent lease 30s"), ("all", "5 concurrent lease 30s")];
    for costs in [ONE, Costs::Recounted] {
        assert_eq!(keyed(&rules, costs), [(0, text.to_owned())]);
    }
}

#[test]
fn of_two_rules_that_admit_the_same_the_later_one_is_the_mistake() {
    assert_eq!(never_binds("1 per 5s, 1 per 5s bucket", Costs::Any).0, 1);
    assert_eq!(never_binds("1 per 5s bucket, 1 per 5s", Costs::Any).0, 1);
}

#[test]
fn a_rule_over_a_longer_window_than_a_sliding_window_is_allowed_and_known() {
    let implied = |rules: &str| {
        let rules = crate::text::parse_rules(rules).unwrap();
        (0..=rules.len()).map(|position| implied_by(&rules, position)).collect::<Vec<_>>()
    };
    for longer in ["20 per 120s", "20 per fixed 120s", "about 30 per 120s", "20 per 120s bucket"] {
        let rules = format!("10 per 60s, {longer}");
        assert_sound(&rules, Costs::Any);
        assert_eq!(implied(&rules), [None, Some(0), None], "{rules}");
    }
    assert_eq!(implied("10 per 60s, 19 per 120s"), [None; 3]);
    assert_eq!(implied("10 per 60s, 20 per 121s"), [None; 3]);
    assert_eq!(implied("prevent_duplicate per 60s, 2 per 120s"), [None; 3]);
    assert_eq!(implied("10 per 60s, n per 120s"), [None; 3]);
}

#[test]
fn the_equal_costs_of_all_calls_make_a_window_stricter() {
    never_binds("10 per 2m, 9 per 1m", Costs::Always(3));
    assert_sound("10 per 2m, 9 per 1m", Costs::Any);
}

#[test]
fn rules_that_no_call_can_pay_are_not_compared() {
    assert_sound("2 per 2m, 9 per 1m", Costs::Always(3));
    assert_sound("prevent_duplicate per 5s, 20 per 60s", Costs::Always(0));
    assert_sound("prevent_duplicate per 5s, 20 per 60s", Costs::Always(u64::MAX));
}
