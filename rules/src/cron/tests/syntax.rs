//! The ticks of each element of the syntax.

use std::time::{Duration, UNIX_EPOCH};

use super::*;

/// Asserts the ticks in UTC after noon of `date`.
#[track_caller]
fn assert_ticks(expression: &str, date: &str, expected: &[&str]) {
    let schedule = schedule(expression, "UTC");
    let found: Vec<u64> = ticks(&schedule, us(&format!("{date}T12:00:00Z"))).take(expected.len()).collect();
    let expected: Vec<String> = expected.iter().map(|tick| format!("{tick} +00:00")).collect();
    assert_eq!(found.iter().map(|&tick| shown(tick, "UTC")).collect::<Vec<_>>(), expected, "{expression}");
    let mut back: Vec<u64> = ticks_back(&schedule, found[found.len() - 1]).take(expected.len()).collect();
    back.reverse();
    assert_eq!(back, found, "{expression} backwards");
}

#[test]
fn values_tick_at_that_value() {
    assert_ticks("0 0 6 * * *", "2024-02-28", &["2024-02-29 06:00:00", "2024-03-01 06:00:00"]);
    assert_ticks("7 5 23 * * *", "2024-12-31", &["2024-12-31 23:05:07", "2025-01-01 23:05:07"]);
    assert_ticks("0 0 0 25 12 ?", "2024-02-28", &["2024-12-25 00:00:00", "2025-12-25 00:00:00"]);
    assert_ticks("00 00 06 01 02 *", "2024-01-01", &["2024-02-01 06:00:00", "2025-02-01 06:00:00"]);
}

#[test]
fn a_star_ticks_at_every_value() {
    assert_ticks("* * * * * *", "2024-02-28", &["2024-02-28 12:00:01", "2024-02-28 12:00:02"]);
    assert_ticks("0 * * * * *", "2024-02-28", &["2024-02-28 12:01:00", "2024-02-28 12:02:00"]);
    assert_ticks("59 59 * * * *", "2024-02-28", &["2024-02-28 12:59:59", "2024-02-28 13:59:59"]);
}

#[test]
fn ranges_include_both_ends() {
    let expected = ["2024-02-28 17:00:00", "2024-02-29 16:00:00", "2024-02-29 17:00:00", "2024-03-01 16:00:00"];
    assert_ticks("0 0 16-17 * * *", "2024-02-28", &["2024-02-28 16:00:00", expected[0], expected[1], expected[2]]);
    assert_ticks("0 0 0 30-31 * *", "2024-03-30", &["2024-03-31 00:00:00", "2024-04-30 00:00:00"]);
    assert_ticks("0 0 0 1 6-6 *", "2024-03-30", &["2024-06-01 00:00:00", "2025-06-01 00:00:00"]);
}

#[test]
fn lists_tick_at_each_of_their_entries() {
    let expected = ["2024-02-28 19:00:00", "2024-02-29 06:00:00", "2024-02-29 19:00:00"];
    assert_ticks("0 0 6,19 * * *", "2024-02-28", &expected);
    assert_ticks("0 0 19,6,6 * * *", "2024-02-28", &expected);
    let expected = ["2024-02-28 12:00:30", "2024-02-28 12:00:40", "2024-02-28 12:00:41", "2024-02-28 12:01:05"];
    assert_ticks("5,40-41,30 * * * * *", "2024-02-28", &["2024-02-28 12:00:05", expected[0], expected[1], expected[2]]);
}

#[test]
fn steps_run_through_a_range_or_from_a_value_to_the_end() {
    let expected = ["2024-02-28 12:30:00", "2024-02-28 13:00:00", "2024-02-28 13:30:00"];
    assert_ticks("0 */30 * * * *", "2024-02-28", &expected);
    assert_ticks("0 0/30 * * * *", "2024-02-28", &expected);
    let expected = ["2024-02-28 12:10:00", "2024-02-28 12:30:00", "2024-02-28 13:10:00"];
    assert_ticks("0 10-49/20 * * * *", "2024-02-28", &expected);
    assert_ticks(
        "57/2 0 0 1 * *",
        "2024-02-28",
        &["2024-03-01 00:00:57", "2024-03-01 00:00:59", "2024-04-01 00:00:57"],
    );
    assert_ticks("0/90 0 0 * * *", "2024-02-28", &["2024-02-29 00:00:00", "2024-03-01 00:00:00"]);
}

#[test]
fn names_may_be_in_upper_or_lower_case() {
    let first = ["2025-01-01 00:00:00", "2025-12-01 00:00:00", "2026-01-01 00:00:00"];
    assert_ticks("0 0 0 1 JAN,dec ?", "2024-12-02", &first);
    // 28 February 2024 is a Wednesday.
    let weekdays = ["2024-02-29 00:00:00", "2024-03-01 00:00:00", "2024-03-04 00:00:00"];
    assert_ticks("0 0 0 * * mon-Fri", "2024-02-28", &weekdays);
    assert_ticks("0 0 0 * * 1-5", "2024-02-28", &weekdays);
    for (number, name) in
        (1..).zip(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"])
    {
        assert_eq!(schedule(&format!("0 0 0 1 {name} *"), "UTC"), schedule(&format!("0 0 0 1 {number} *"), "UTC"));
    }
}

#[test]
fn sunday_is_zero_or_seven_and_may_start_a_range() {
    let sundays = ["2024-03-03 00:00:00", "2024-03-10 00:00:00"];
    for sunday in ["0", "7", "SUN", "0,7", "SUN-SUN", "7-7", "SUN-0"] {
        assert_ticks(&format!("0 0 0 ? * {sunday}"), "2024-02-28", &sundays);
    }
    let to_tuesday = ["2024-03-03 00:00:00", "2024-03-04 00:00:00", "2024-03-05 00:00:00", "2024-03-10 00:00:00"];
    for range in ["SUN-TUE", "7-2", "0-2"] {
        assert_ticks(&format!("0 0 0 ? * {range}"), "2024-02-28", &to_tuesday);
    }
    assert_ticks("0 0 0 ? * SAT-SUN", "2024-02-28", &["2024-03-02 00:00:00", sundays[0], "2024-03-09 00:00:00"]);
}

#[test]
fn steps_through_a_week_start_on_monday_by_default() {
    let from_monday = ["2024-03-01 00:00:00", "2024-03-03 00:00:00", "2024-03-04 00:00:00", "2024-03-06 00:00:00"];
    assert_ticks("0 0 0 ? * */2", "2024-02-29", &from_monday);
    assert_ticks("0 0 0 ? * MON/2", "2024-02-29", &from_monday);
    let from_sunday = ["2024-03-02 00:00:00", "2024-03-03 00:00:00", "2024-03-05 00:00:00", "2024-03-07 00:00:00"];
    assert_ticks("0 0 0 ? * 0/2", "2024-02-29", &from_sunday);
}

#[test]
fn l_is_the_last_day_of_the_month() {
    let expected = ["2024-02-29 00:00:00", "2024-03-31 00:00:00", "2024-04-30 00:00:00"];
    assert_ticks("0 0 0 L * *", "2024-02-28", &expected);
    assert_ticks("0 0 0 l * ?", "2024-02-28", &expected);
    assert_ticks("0 0 0 L-3 * *", "2025-02-28", &["2025-03-28 00:00:00", "2025-04-27 00:00:00"]);
    assert_ticks(
        "0 0 0 L-30 * *",
        "2024-03-30",
        &["2024-05-01 00:00:00", "2024-07-01 00:00:00", "2024-08-01 00:00:00"],
    );
    assert_ticks(
        "0 0 0 1,L-1,L * *",
        "2025-02-26",
        &["2025-02-27 00:00:00", "2025-02-28 00:00:00", "2025-03-01 00:00:00"],
    );
}

#[test]
fn w_is_the_nearest_workday_within_the_month() {
    // In 2024, 15 June is a Saturday and 15 September a Sunday; 1 June is a Saturday and 1 September a Sunday.
    let fifteenth = ["2024-06-14 00:00:00", "2024-07-15 00:00:00", "2024-08-15 00:00:00", "2024-09-16 00:00:00"];
    assert_ticks("0 0 0 15W * *", "2024-05-31", &fifteenth);
    let first = ["2024-06-03 00:00:00", "2024-07-01 00:00:00", "2024-08-01 00:00:00", "2024-09-02 00:00:00"];
    assert_ticks("0 0 0 1w * *", "2024-05-31", &first);
    // 31 March 2024 is a Sunday, 31 August a Saturday; April, June and July's neighbours have no 31st.
    let end = ["2024-03-29 00:00:00", "2024-05-31 00:00:00", "2024-07-31 00:00:00", "2024-08-30 00:00:00"];
    assert_ticks("0 0 0 31W * *", "2024-03-01", &end);
    // 30 June 2024 is a Sunday and the last day of its month; 30 November is a Saturday.
    let thirtieth = ["2024-06-28 00:00:00", "2024-07-30 00:00:00", "2024-08-30 00:00:00", "2024-09-30 00:00:00"];
    assert_ticks("0 0 0 30W * *", "2024-06-01", &thirtieth);
    assert_ticks(
        "0 0 0 1W,15W * *",
        "2024-06-01",
        &["2024-06-03 00:00:00", "2024-06-14 00:00:00", "2024-07-01 00:00:00"],
    );
}

#[test]
fn lw_is_the_last_workday_of_the_month() {
    let expected = ["2024-03-29 00:00:00", "2024-04-30 00:00:00", "2024-05-31 00:00:00", "2024-06-28 00:00:00"];
    assert_ticks("0 0 0 LW * *", "2024-03-01", &expected);
    assert_ticks("0 0 0 lw * *", "2024-03-01", &expected);
    assert_ticks("0 0 0 LW * *", "2024-08-01", &["2024-08-30 00:00:00", "2024-09-30 00:00:00"]);
}

#[test]
fn a_weekday_with_l_is_the_last_of_the_month() {
    let fridays = ["2024-02-23 00:00:00", "2024-03-29 00:00:00", "2024-04-26 00:00:00"];
    for last in ["5L", "FRIL", "friL"] {
        assert_ticks(&format!("0 0 0 * * {last}"), "2024-02-01", &fridays);
    }
    assert_ticks("0 0 0 * * SUNL,0L,7L", "2024-03-01", &["2024-03-31 00:00:00", "2024-04-28 00:00:00"]);
}

#[test]
fn a_weekday_with_a_number_is_the_nth_of_the_month() {
    let second = ["2024-02-09 00:00:00", "2024-03-08 00:00:00", "2024-04-12 00:00:00"];
    assert_ticks("0 0 0 ? * 5#2", "2024-02-01", &second);
    assert_ticks("0 0 0 ? * FRI#2", "2024-02-01", &second);
    assert_ticks(
        "0 0 0 ? * SUN#1,0#3",
        "2024-09-01",
        &["2024-09-15 00:00:00", "2024-10-06 00:00:00", "2024-10-20 00:00:00"],
    );
    // From February to July 2024, only these months have a fifth Friday.
    assert_ticks(
        "0 0 0 ? * FRI#5",
        "2024-02-01",
        &["2024-03-29 00:00:00", "2024-05-31 00:00:00", "2024-08-30 00:00:00"],
    );
}

#[test]
fn a_day_matches_both_day_fields() {
    assert_ticks(
        "0 0 0 13 * FRI",
        "2024-02-28",
        &["2024-09-13 00:00:00", "2024-12-13 00:00:00", "2025-06-13 00:00:00"],
    );
    assert_ticks("0 0 0 L * FRIL", "2024-02-28", &["2024-05-31 00:00:00", "2025-01-31 00:00:00"]);
}

#[test]
fn leap_days_tick_in_leap_years_only() {
    assert_ticks("0 0 0 29 2 *", "2024-02-29", &["2028-02-29 00:00:00", "2032-02-29 00:00:00"]);
    assert_ticks("0 0 0 29 2 *", "2096-02-29", &["2104-02-29 00:00:00", "2108-02-29 00:00:00"]);
    assert_ticks("0 0 0 29 2 MON", "2024-02-29", &["2044-02-29 00:00:00", "2072-02-29 00:00:00"]);
}

#[test]
fn macros_abbreviate_expressions() {
    let pairs = [
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
        ("@monthly", "0 0 0 1 * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("@daily", "0 0 0 * * *"),
        (" @Midnight ", "0 0 0 * * *"),
        ("@hourly", "0 0 * * * *"),
    ];
    for (short, long) in pairs {
        assert_eq!(schedule(short, "UTC"), schedule(long, "UTC"));
    }
    assert_eq!(schedule(" @Midnight ", "UTC").expression(), "@Midnight");
}

#[test]
fn schedules_with_the_same_meaning_are_equal() {
    assert_eq!(schedule("0  0\t6 * * ?", "asia/shanghai"), schedule("0 0 6 ? * MON-SUN", "Asia/Shanghai"));
    assert_eq!(schedule("0 0 */1 L,15W * *", "UTC"), schedule("0 0 0-23 15w,l * 0-6", "utc"));
    assert_ne!(schedule("@daily", "UTC"), schedule("@daily", "Asia/Shanghai"));
    assert_ne!(schedule("0 0 0 L * *", "UTC"), schedule("0 0 0 L-1 * *", "UTC"));
    assert_ne!(schedule("0 0 0 * * FRIL", "UTC"), schedule("0 0 0 * * FRI", "UTC"));
}

#[test]
fn a_schedule_is_shown_as_its_expression_and_its_zone() {
    let schedule = schedule("0 0  6 *\t* *", "ASIA/shanghai");
    assert_eq!(schedule.to_string(), "\"0 0 6 * * *\" Asia/Shanghai");
    assert_eq!(schedule.expression(), "0 0 6 * * *");
    assert_eq!(schedule.zone(), "Asia/Shanghai");
}

#[test]
fn there_are_no_ticks_before_1970_and_after_9999() {
    let daily = schedule("0 0 6 * * *", "UTC");
    assert_eq!(daily.last_tick_us(us("1970-01-01T05:59:59.999999Z")), None);
    assert_eq!(daily.last_tick_us(us("1970-01-01T06:00:00Z")), Some(6 * 3600 * SECOND_US));
    assert_eq!(daily.next_tick_us(0), Some(6 * 3600 * SECOND_US));
    assert_eq!(schedule("0 0 0 1 1 *", "UTC").last_tick_us(0), Some(0));
    assert_eq!(daily.next_tick_us(u64::MAX), None);
    assert_eq!(schedule("* * * * * *", "UTC").next_tick_us(u64::MAX), None);
    let last = daily.last_tick_us(u64::MAX).unwrap();
    assert_eq!(shown(last, "UTC"), "9999-12-30 06:00:00 +00:00");
    assert_eq!(daily.next_tick_us(last), None);
}

#[test]
fn times_are_as_exact_as_microseconds_and_may_be_before_1970() {
    let (daily, new_year) = (schedule("0 0 6 * * *", "UTC"), schedule("0 0 0 1 1 *", "UTC"));
    let nanosecond = Duration::from_nanos(1);
    let [six, before] = [UNIX_EPOCH + Duration::from_secs(6 * 3600), UNIX_EPOCH - Duration::from_secs(1)];
    assert_eq!((daily.last_tick(six), daily.last_tick(six - nanosecond)), (Some(six), None));
    assert_eq!(daily.next_tick(six - nanosecond), Some(six));
    assert_eq!(daily.next_tick(six), Some(six + Duration::from_secs(24 * 3600)));
    assert_eq!((daily.last_tick(before), daily.next_tick(before)), (None, Some(six)));
    assert_eq!(new_year.next_tick(before), Some(UNIX_EPOCH));
}
