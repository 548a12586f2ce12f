//! The errors of mistaken expressions and zones.

use super::super::{CronField, ScheduleError};
use super::*;

#[track_caller]
fn expression_error(expression: &str) -> String {
    let error = Schedule::parse(expression, "UTC").unwrap_err();
    assert!(!error.is_zone());
    error.to_string()
}

#[track_caller]
fn zone_error(zone: &str) -> String {
    let error = Schedule::parse("@daily", zone).unwrap_err();
    assert!(error.is_zone());
    error.to_string()
}

const SIX: &str = "write six: second minute hour day-of-month month day-of-week, like `0 0 6 * * *`";

#[test]
fn the_error_of_five_fields_adds_the_second() {
    let text = "the cron expression has 5 fields, but the first of six is the second; write `0 0 6 * * MON`";
    assert_eq!(expression_error("0 6 * * MON"), text);
    assert!(Schedule::parse("0 0 6 * * MON", "UTC").is_ok());
}

#[test]
fn the_error_of_another_number_of_fields_lists_the_six() {
    assert_eq!(expression_error("  "), format!("the cron expression is empty; {SIX}"));
    assert_eq!(expression_error("daily"), format!("the cron expression has 1 field; {SIX}"));
    assert_eq!(expression_error("0 0"), format!("the cron expression has 2 fields; {SIX}"));
    assert_eq!(
        expression_error("0 0 6 * * * 2024"),
        format!("the cron expression has 7 fields, but there is none for the year; {SIX}")
    );
}

#[test]
fn the_error_of_an_unknown_macro_lists_the_known_ones() {
    let text = "the cron expression has the unknown macro `@every 5m`; write `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, \
                `@midnight`, `@hourly`, or six fields";
    assert_eq!(expression_error("@every 5m"), text);
}

#[test]
fn the_error_of_an_unknown_value_gives_the_range_of_its_field() {
    let minutes = "write 0 to 59, like `30`, `0-10`, `*/5` or `0,30`";
    let hours = "write 0 to 23, like `6`, `9-17`, `*/2` or `6,18`";
    assert_eq!(
        expression_error("60 0 0 * * *"),
        format!("the cron expression has the unknown value `60` in its second field; {minutes}")
    );
    assert_eq!(
        expression_error("0 +5 0 * * *"),
        format!("the cron expression has the unknown value `+5` in its minute field; {minutes}")
    );
    assert_eq!(
        expression_error("0 0 24 * * *"),
        format!("the cron expression has the unknown value `24` in its hour field; {hours}")
    );
    assert_eq!(
        expression_error("0 0 9-MON * * *"),
        format!("the cron expression has the unknown value `MON` in its hour field; {hours}")
    );
    assert_eq!(
        expression_error("0 0 0 * 13 *"),
        "the cron expression has the unknown value `13` in its month field; write 1 to 12 or JAN to DEC, like `1`, `JUN-AUG`, `*/3` \
         or `1,7`"
    );
}

#[test]
fn the_error_of_an_unknown_day_gives_the_syntax_of_days() {
    let date = "write 1 to 31, like `1`, `1-7`, `*/2` or `1,15`, or `L`, `L-1` to `L-30`, `LW`, `1W` to `31W`";
    for text in ["0", "32", "L-0", "L-31", "L3", "LX", "W", "0W", "32W", "1-5W", "L-3W", "MON", "LL"] {
        let expected = format!("the cron expression has the unknown value `{text}` in its day-of-month field; {date}");
        assert_eq!(expression_error(&format!("0 0 0 {text} * *")), expected);
    }
    let weekday = "write 0 to 7 or MON to SUN, like `5`, `MON-FRI` or `SAT,SUN`, or `FRIL`, `FRI#1` to `FRI#5`";
    for text in ["8", "MONDAY", "L", "8L", "1-5L", "MON#0", "MON#6", "MON#", "#2", "5#2#1", "15W"] {
        let expected =
            format!("the cron expression has the unknown value `{text}` in its day-of-week field; {weekday}");
        assert_eq!(expression_error(&format!("0 0 0 * * {text}")), expected);
    }
}

#[test]
fn the_error_of_a_missing_value_gives_the_range_of_its_field() {
    let text = "the cron expression lacks a value in its hour field; write 0 to 23, like `6`, `9-17`, `*/2` or `6,18`";
    for hour in ["6,", ",6", "6,,7", "6-", "-6", "/2"] {
        assert_eq!(expression_error(&format!("0 0 {hour} * * *")), text);
    }
}

#[test]
fn the_error_of_a_range_that_wraps_around_gives_two_ranges() {
    let text = |field, range, remedy| {
        format!(
            "the cron expression has the range `{range}` in its {field} field, which ends before it starts; write `{remedy}`"
        )
    };
    assert_eq!(expression_error("0 0 0 * * FRI-MON"), text("day-of-week", "FRI-MON", "FRI-7,0-MON"));
    assert_eq!(expression_error("0 0 22-5/2 * * *"), text("hour", "22-5", "22-23,0-5"));
    assert_eq!(expression_error("0 0 0 * NOV-FEB *"), text("month", "NOV-FEB", "NOV-12,1-FEB"));
    for remedy in ["0 0 0 * * FRI-7,0-MON", "0 0 22-23,0-5 * * *", "0 0 0 * NOV-12,1-FEB *", "0 0 0 * * 6-7,0-0"] {
        assert!(Schedule::parse(remedy, "UTC").is_ok());
    }
}

#[test]
fn a_step_is_at_least_one() {
    for step in ["0", "", "-5", "x", "5/2", "99999999999999999999"] {
        let expected = format!(
            "the cron expression has the step `{step}` in its minute field; write a whole number of at least 1, like `*/5`"
        );
        assert_eq!(expression_error(&format!("0 */{step} * * * *")), expected);
    }
}

#[test]
fn a_question_mark_stands_alone_in_a_day_field() {
    let text = |field| {
        format!(
            "the cron expression has `?` in its {field} field; it may only stand alone in a day field, so write `*`"
        )
    };
    assert_eq!(expression_error("0 0 ? * * *"), text("hour"));
    assert_eq!(expression_error("0 0 0 * ? *"), text("month"));
    assert_eq!(expression_error("0 0 0 ?/2 * *"), text("day-of-month"));
    assert_eq!(expression_error("0 0 0 * * MON,?"), text("day-of-week"));
}

#[test]
fn an_expression_that_never_ticks_is_an_error() {
    for never in ["0 0 0 30 2 *", "0 0 0 31 4,6,9,11 ?", "0 0 0 L-30 4 *", "0 0 0 1-7 * MON#2", "0 0 0 15W * SUN"] {
        let expected = format!(
            "the cron expression never ticks: no day matches month, day-of-month and day-of-week of `{never}` at once; change one"
        );
        assert_eq!(expression_error(never), expected);
    }
}

#[test]
fn the_error_of_an_unknown_zone_suggests_a_similar_one() {
    let similar = [
        ("Asia/Shangai", "Asia/Shanghai"),
        ("shanghai", "Asia/Shanghai"),
        ("China/Shanghai", "Asia/Shanghai"),
        ("America/New York", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
    ];
    for (name, similar) in similar {
        assert_eq!(zone_error(name), format!("the time zone `{name}` is unknown; did you mean `{similar}`?"));
    }
}

#[test]
fn the_error_of_an_unknown_zone_like_no_other_gives_examples() {
    for name in ["", "GMT+8", "UTC+8", "+08:00", "CST", "Asia/Beijing", "Etc/Unknown", "../UTC"] {
        let text = "write an IANA name, like `Asia/Shanghai` or `UTC`";
        assert_eq!(zone_error(name), format!("the time zone `{name}` is unknown; {text}"));
    }
}

#[test]
fn a_mistake_in_the_expression_comes_before_one_in_the_zone() {
    let error = Schedule::parse("x 0 0 * * *", "Nowhere").unwrap_err();
    assert_eq!(error, ScheduleError::Value { field: CronField::Second, text: "x".into() });
}
