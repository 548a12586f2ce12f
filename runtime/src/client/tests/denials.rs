//! Which answers pause calls, and which only space them.

use super::*;

const SOON: (&str, &str) = ("retry-after", "30");
const LEFT: (&str, &str) = ("x-ratelimit-remaining", "7");
const USED_UP: (&str, &str) = ("x-ratelimit-remaining", "0");
const LIMIT: (&str, &str) = ("x-ratelimit-limit", "60");
const IN_SECONDS: (&str, &str) = ("x-ratelimit-reset", "20");
const AT_A_TIME: (&str, &str) = ("x-ratelimit-reset", "1800000020");
const BURST: (&str, &str) = ("ratelimit-policy", r#""burst";q=60;w=60"#);
const PULLS: (&str, &str) = ("ratelimit-limit", "100;w=21600");
const PULLS_USED_UP: (&str, &str) = ("ratelimit-remaining", "0;w=21600");
const BURST_USED_UP: (&str, &str) = ("ratelimit", r#""burst";r=0;t=20"#);

#[test]
fn a_pause_is_asked_for_by_denials_and_by_fixed_windows_that_are_used_up() {
    for (status, fields, ms) in [
        // Says when to come back.
        (429, &[SOON][..], Some((30_000, Some("retry-after")))),
        (503, &[SOON], Some((30_000, Some("retry-after")))),
        (529, &[SOON], Some((30_000, Some("retry-after")))),
        // GitHub's secondary limit.
        (403, &[SOON, LEFT], Some((30_000, Some("retry-after")))),
        // GitHub's primary limit.
        (403, &[USED_UP, LIMIT, AT_A_TIME], Some((20_000, Some("x-ratelimit")))),
        (429, &[USED_UP, LIMIT, AT_A_TIME], Some((20_000, Some("x-ratelimit")))),
        (200, &[USED_UP, LIMIT, AT_A_TIME], Some((20_000, Some("x-ratelimit")))),
        (403, &[USED_UP, LIMIT, IN_SECONDS], Some((20_000, Some("x-ratelimit")))),
        // A denial says only what is left.
        (429, &[USED_UP, LIMIT, IN_SECONDS], Some((20_000, Some("x-ratelimit")))),
        (429, &[IN_SECONDS], Some((20_000, Some("x-ratelimit")))),
        (429, &[BURST, BURST_USED_UP], Some((20_000, Some("ratelimit")))),
        // The time to come back is that of the limit that denied, and the end of a fixed window is no earlier.
        (429, &[SOON, USED_UP, ("x-ratelimit-reset", "300")], Some((30_000, Some("retry-after")))),
        (429, &[SOON, USED_UP, ("x-ratelimit-reset", "1800000300")], Some((300_000, Some("x-ratelimit")))),
        (429, &[SOON, USED_UP, AT_A_TIME], Some((30_000, Some("retry-after")))),
        // A denial says nothing, or what denied is not among what it says.
        (429, &[], Some((1_000, None))),
        (429, &[LEFT, AT_A_TIME], Some((1_000, None))),
        (429, &[USED_UP], Some((1_000, None))),
        (403, &[USED_UP], Some((1_000, None))),
        // A time that is zero or over says nothing of the next call.
        (429, &[("retry-after", "0")], Some((1_000, None))),
        (429, &[USED_UP, LIMIT, ("x-ratelimit-reset", "1799999999")], Some((1_000, None))),
        (429, &[("retry-after", "0"), USED_UP, IN_SECONDS], Some((20_000, Some("x-ratelimit")))),
        // A limit without a reset, as Docker Hub has it.
        (
            429,
            &[("ratelimit-policy", r#""a";q=2;w=60"#), ("ratelimit", r#""a";r=0"#)],
            Some((30_000, Some("ratelimit"))),
        ),
        (429, &[PULLS, PULLS_USED_UP], Some((216_000, Some("ratelimit")))),
        (429, &[PULLS], Some((1_000, None))),
        // Of gRPC.
        (200, &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "120")], Some((120, Some("grpc-retry-pushback-ms")))),
        (200, &[("grpc-status", "8"), SOON], Some((30_000, Some("retry-after")))),
        (200, &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "-1")], Some((1_000, None))),
        (200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "120")], None),
        // No denials.
        (403, &[], None),
        (403, &[LEFT, LIMIT, AT_A_TIME], None),
        (503, &[], None),
        (500, &[LEFT, AT_A_TIME], None),
        (202, &[SOON], None),
        (301, &[SOON], None),
        (404, &[SOON], None),
        (200, &[USED_UP, LIMIT, IN_SECONDS], None),
        (200, &[BURST, BURST_USED_UP], None),
        (200, &[LEFT, AT_A_TIME], None),
    ] {
        assert_eq!(pause(&read(status, fields)), ms, "{status} {fields:?}");
    }
}

#[test]
fn a_limit_that_is_used_up_spaces_calls_by_their_share_of_its_window() {
    for (fields, ms) in [
        (&[BURST, BURST_USED_UP][..], Some(1_000)),
        // It is reset earlier.
        (&[BURST, ("ratelimit", r#""burst";r=0;t=0"#)], None),
        (&[("ratelimit-policy", r#""a";q=2;w=60"#), ("ratelimit", r#""a";r=0;t=7"#)], Some(7_000)),
        (&[("ratelimit-policy", r#""a";q=2;w=60"#), ("ratelimit", r#""a";r=0"#)], Some(30_000)),
        // Without a window, the time until the reset is no longer than it.
        (&[LIMIT, USED_UP, IN_SECONDS], Some(20_000)),
        (&[BURST_USED_UP], Some(20_000)),
        (&[USED_UP, LIMIT], None),
        (&[LEFT, LIMIT, IN_SECONDS], None),
        (&[("ratelimit-policy", "60;w=60"), ("ratelimit", "limit=60, remaining=0, reset=20")], Some(1_000)),
        (&[("ratelimit-limit", "60, 60;w=60"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "20")], Some(1_000)),
        (
            &[
                ("x-ratelimit-limit-tokens", "100"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6s"),
            ],
            Some(6_000),
        ),
        // Of several, the longest.
        (
            &[
                ("ratelimit-policy", r#""a";q=2;w=60, "b";q=6;w=60, "c";q=1;w=600"#),
                ("ratelimit", r#""a";r=0;t=60, "b";r=0;t=60, "c";r=1;t=600"#),
            ],
            Some(30_000),
        ),
        (&[("ratelimit-policy", r#""a";q=0;w=60"#), ("ratelimit", r#""a";r=0"#)], None),
    ] {
        let heard = read(200, fields);
        assert_eq!(heard.spacing().map(|spacing| spacing.as_millis()), ms, "{fields:?}");
        assert_eq!(heard.wait(), heard.spacing(), "{fields:?}");
        assert_eq!(read(429, fields).spacing(), None, "{fields:?}");
    }
}

#[test]
fn who_says_that_windows_are_fixed_waits_for_their_end() {
    let fixed = ResponseReader::new().fixed_windows();
    let heard = read_at(fixed, 200, &[USED_UP, LIMIT, IN_SECONDS], LATER);
    assert_eq!((pause(&heard), heard.spacing()), (Some((20_000, Some("x-ratelimit"))), None));
    assert!(heard.limits()[0].has_fixed_windows());
    // Without a reset, it waits as without that declaration.
    assert_eq!(read_at(fixed, 200, &[PULLS, PULLS_USED_UP], LATER).wait(), Some(Duration::from_secs(216)));
    assert_eq!(read(200, &[PULLS, PULLS_USED_UP]).wait(), Some(Duration::from_secs(216)));
}

#[test]
fn a_denial_that_says_no_time_pauses_by_default() {
    let reader = ResponseReader::new().default_pause(Duration::from_secs(60));
    assert_eq!(read_at(reader, 429, &[], LATER).wait(), Some(Duration::from_secs(60)));
    let none = ResponseReader::new().default_pause(Duration::ZERO);
    assert_eq!(read_at(none, 429, &[], LATER), Heard::default());
}
