//! When a denial says to come back.

use super::*;

/// The milliseconds of the pause after a denial with these fields.
fn paused_ms(fields: &[(&str, &str)], now: u64) -> u128 {
    read_at(ResponseReader::new(), 429, fields, now).pause().map_or(0, |pause| pause.duration().as_millis())
}

#[test]
fn every_form_of_a_time_is_read() {
    for (field, value, now, ms) in [
        ("retry-after", "57", LATER, 57_000),
        ("retry-after", " 57 ", LATER, 57_000),
        ("retry-after", "64.57", LATER, 64_570),
        ("retry-after", "0.57000000000001", LATER, 570),
        ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT", NOW, 30_000),
        ("retry-after", "Mon, 06 Nov 1994 08:50:07 GMT", NOW, 30_000),
        ("retry-after", "Sunday, 06-Nov-94 08:50:07 GMT", NOW, 30_000),
        ("retry-after", "Sun Nov  6 08:50:07 1994", NOW, 30_000),
        ("retry-after", "1800000030", LATER, 30_000),
        ("retry-after-ms", "120", LATER, 120),
        ("retry-after-ms", "120.5", LATER, 120),
        ("x-ms-retry-after-ms", "1500", LATER, 1_500),
        ("x-ratelimit-reset", "30", LATER, 30_000),
        ("x-ratelimit-reset", "1800000030", LATER, 30_000),
        ("x-ratelimit-reset", "1800000030.25", LATER, 30_250),
        ("x-ratelimit-reset", "1800000030123", LATER, 30_123),
        ("x-ratelimit-reset", "2027-01-15T08:00:30Z", LATER, 30_000),
        ("x-ratelimit-reset", "Fri, 15 Jan 2027 08:00:30 GMT", LATER, 30_000),
        ("x-ratelimit-reset", "6m0s", LATER, 360_000),
        ("x-ratelimit-reset", "1h0m1s", LATER, 3_600_000),
        ("x-ratelimit-reset", "120ms", LATER, 120),
        ("x-ratelimit-reset", "7.66s", LATER, 7_660),
        ("x-ratelimit-reset", "1m2.5s", LATER, 62_500),
        ("x-ratelimit-reset", "PT1M", LATER, 60_000),
        ("x-rate-limit-reset", "30", LATER, 30_000),
        ("ratelimit-reset", "30", LATER, 30_000),
        ("x-ratelimit-reset-after", "0.25", LATER, 250),
        ("x-ratelimit-reset-tokens", "6m0s", LATER, 360_000),
        ("anthropic-ratelimit-tokens-reset", "2027-01-15T08:00:30Z", LATER, 30_000),
    ] {
        assert_eq!(paused_ms(&[(field, value)], now), ms, "{field}: {value}");
    }
}

#[test]
fn a_day_of_a_duration_has_24_hours() {
    let reader = ResponseReader::new().longest_pause(Duration::from_secs(30 * 86_400));
    for (value, seconds) in
        [("1d2h", 26 * 3_600), ("P1D", 86_400), ("P1DT1M", 86_460), ("2d", 172_800), ("1w", 604_800)]
    {
        for field in ["retry-after", "x-ratelimit-reset"] {
            let heard = read_at(reader, 429, &[(field, value)], LATER);
            assert_eq!(pause(&heard).map(|(ms, _)| ms), Some(seconds * 1_000), "{field}: {value}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_a_denial_without_a_time() {
    let nonsense = ["", " ", "-1", "+5", "soon", "1e3", "0x10", "5 5", "1.2.3", ".", ".5", "NaN", "inf", ","];
    let more = ["soon, later", "Sun, 99 Nov 1994 08:49:37 GMT", "1800000030;1", "6m0", "٣", "\u{1}"];
    for value in nonsense.into_iter().chain(more) {
        let Ok(line) = HeaderValue::from_bytes(value.as_bytes()) else { continue };
        for field in ["retry-after", "x-ratelimit-reset"] {
            let headers = HeaderMap::from_iter([(http::HeaderName::from_static(field), line.clone())]);
            let heard = ResponseReader::new().read(StatusCode::TOO_MANY_REQUESTS, &headers);
            assert_eq!(pause(&heard), Some((1_000, None)), "{field}: {value}");
        }
    }
}

#[test]
fn a_reset_of_a_number_that_is_no_time_means_nothing() {
    for value in ["100000000000000", "99999999999999999999999999"] {
        assert_eq!(pause(&read(429, &[("x-ratelimit-reset", value)])), Some((1_000, None)), "{value}");
    }
}

#[test]
fn a_number_of_retry_after_that_is_no_point_in_time_is_one_of_seconds() {
    for value in
        ["999999999", "1000000000", "1799900000", "100000000000", "100000000000000", "99999999999999999999999999"]
    {
        let heard = read(429, &[("retry-after", value)]);
        assert_eq!(pause(&heard), Some((3_600_000, Some("retry-after"))), "{value}");
    }
    // A reset names points in time more often.
    assert_eq!(read(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000000000")]).wait(), None);
}

#[test]
fn what_is_not_understood_of_a_line_leaves_the_rest() {
    for value in ["120, soon", "soon, 120", "120,", ", 120", "soon, Fri, 15 Jan 2027 08:02:00 GMT, later"] {
        for field in ["retry-after", "x-ratelimit-reset"] {
            assert_eq!(paused_ms(&[(field, value)], LATER), 120_000, "{field}: {value}");
        }
    }
}

#[test]
fn a_time_in_the_past_is_over() {
    for value in ["0", "0.0", "Sun, 06 Nov 1994 08:49:37 GMT", "1799999000", "1799999000000"] {
        assert_eq!(read(503, &[("retry-after", value)]).pause(), None, "{value}");
    }
}

#[test]
fn of_several_times_the_longest_counts() {
    let fields = [("retry-after", "1"), ("retry-after", "3"), ("retry-after-ms", "2000")];
    assert_eq!(pause(&read(429, &fields)), Some((3_000, Some("retry-after"))));
    let fields = [("retry-after", "1"), ("retry-after-ms", "1200")];
    assert_eq!(pause(&read(429, &fields)), Some((1_200, Some("retry-after-ms"))));
    // A proxy may join lines.
    assert_eq!(pause(&read(429, &[("retry-after", "120, 60")])), Some((120_000, Some("retry-after"))));
    assert_eq!(pause(&read(429, &[("retry-after-ms", "60, 120")])), Some((120, Some("retry-after-ms"))));
    let dates = ["Fri, 15 Jan 2027 08:00:20 GMT", "Friday, 15-Jan-27 08:00:30 GMT"].join(", ");
    for joined in [&dates, &format!("10, {dates}"), &format!("{dates}, 10")] {
        assert_eq!(paused_ms(&[("retry-after", joined)], LATER), 30_000, "{joined}");
    }
}

#[test]
fn a_point_in_time_is_compared_with_the_date_of_the_answer_as_either_clock_may_be_off() {
    let date = ("date", "Fri, 15 Jan 2027 08:00:00 GMT");
    let reset = ("retry-after", "Fri, 15 Jan 2027 08:00:30 GMT");
    for now in [LATER - 7_000, LATER - 20, LATER, LATER + 20, LATER + 86_400, 0, u64::from(u32::MAX)] {
        assert_eq!(paused_ms(&[date, reset], now), 30_000, "{now}");
    }
    // A time beyond the longest pause is cut. It is no sign that a clock is wrong.
    let far = ("retry-after", "Fri, 15 Jan 2027 09:30:00 GMT");
    for now in [LATER - 7_200, LATER, LATER + 3_600, LATER + 7_200] {
        assert_eq!(paused_ms(&[date, far], now), 3_600_000, "{now}");
    }
    // A cache sends the date of the server, and how old the answer is.
    assert_eq!(paused_ms(&[date, reset, ("age", "10")], LATER), 20_000);
    assert_eq!(paused_ms(&[date, reset, ("age", "-10")], LATER), 30_000);
}

#[test]
fn a_date_that_makes_no_sense_gives_way_to_our_clock() {
    let reset = ("retry-after", "1800000030");
    let dates = ["Thu, 01 Jan 1970 00:00:00 GMT", "yesterday", "Thu, 01 Jan 2099 00:00:00 GMT"];
    for date in dates {
        assert_eq!(paused_ms(&[("date", date), reset], LATER), 30_000, "{date}");
    }
}

#[test]
fn a_date_by_which_the_time_has_long_come_gives_way_to_our_clock() {
    let (reset, ahead) = (("retry-after", "1800000600"), ("date", "Fri, 15 Jan 2027 08:20:00 GMT"));
    assert_eq!(paused_ms(&[ahead, reset], LATER), 600_000);
    // By ours, it has come, too.
    assert_eq!(read_at(ResponseReader::new(), 503, &[ahead, reset], LATER + 700).pause(), None);
    // It has just come, and our clock is behind.
    let just = ("date", "Fri, 15 Jan 2027 08:10:01 GMT");
    assert_eq!(read_at(ResponseReader::new(), 503, &[just, reset], LATER).pause(), None);
}

#[test]
fn a_reset_may_be_later_than_the_end_of_the_longest_pause() {
    let day = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800072000")];
    let heard = read_at(ResponseReader::new(), 200, &day, LATER);
    assert_eq!(heard.limits()[0].reset(), Some(Duration::from_secs(20 * 3_600)));
    assert_eq!(pause(&heard), Some((3_600_000, Some("x-ratelimit"))));
    let spaced = [("ratelimit", r#""day";r=0;t=72000"#)];
    assert_eq!(read_at(ResponseReader::new(), 200, &spaced, LATER).wait(), Some(Duration::from_secs(3_600)));
}

#[test]
fn no_pause_is_longer_than_the_longest() {
    let reader = ResponseReader::new().longest_pause(Duration::from_secs(90)).default_pause(Duration::from_secs(100));
    let millions = "99999999";
    for fields in [
        &[("retry-after", millions)][..],
        &[("retry-after", "2400000000")],
        &[("retry-after-ms", "99999999999999")],
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9223372036854ms")],
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "4102444800")],
        &[("ratelimit", r#""a";r=0;t=999999999999999"#)],
        &[],
    ] {
        let heard = read_at(reader, 429, fields, LATER);
        assert_eq!(heard.wait(), Some(Duration::from_secs(90)), "{fields:?}");
    }
    let day = ResponseReader::new().longest_pause(Duration::from_secs(86_400));
    assert_eq!(read_at(day, 429, &[("retry-after", "7200")], LATER).wait(), Some(Duration::from_secs(7_200)));
    let endless = ResponseReader::new().longest_pause(Duration::MAX);
    assert_eq!(read_at(endless, 429, &[("retry-after", "7200")], LATER).wait(), Some(Duration::from_secs(7_200)));
}
