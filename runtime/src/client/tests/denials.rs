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
        (200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "120")], Some((120, Some("grpc-retry-pushback-ms")))),
        (200, &[("grpc-status", "14")], None),
        (200, &[("grpc-status", "13"), ("grpc-retry-pushback-ms", "120")], None),
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
fn a_denial_and_an_error_of_the_server_are_failures_and_a_mistake_of_the_caller_is_none() {
    for (status, has_failed) in [(200, false), (404, false), (429, true), (500, true), (503, true)] {
        assert_eq!(read(status, &[]).has_failed, has_failed, "{status}");
    }
    for code in ["0", "3", "5", "6", "7", "9", "10", "11", "16"] {
        assert!(!read(200, &[("grpc-status", code)]).has_failed, "{code}");
    }
    for code in ["1", "2", "4", "8", "12", "13", "14", "15", "17", "", "OK"] {
        assert!(read(200, &[("grpc-status", code)]).has_failed, "{code}");
    }
}

#[test]
fn a_limit_that_is_used_up_spaces_calls_until_more_is_left_or_by_their_share_of_its_window() {
    for (fields, ms) in [
        // The current draft says when more is left.
        (&[BURST, BURST_USED_UP][..], Some(20_000)),
        (&[BURST, ("ratelimit", r#""burst";r=0;t=0"#)], None),
        (&[("ratelimit-policy", r#""a";q=2;w=60"#), ("ratelimit", r#""a";r=0;t=7"#)], Some(7_000)),
        (&[("ratelimit-policy", r#""a";q=2;w=60"#), ("ratelimit", r#""a";r=0"#)], Some(30_000)),
        // Without a window, the time until the reset is no longer than it.
        (&[LIMIT, USED_UP, IN_SECONDS], Some(20_000)),
        (&[BURST_USED_UP], Some(20_000)),
        (&[USED_UP, LIMIT], None),
        (&[LEFT, LIMIT, IN_SECONDS], None),
        (&[("ratelimit-policy", "60;w=60"), ("ratelimit", "limit=60, remaining=0, reset=20")], Some(1_000)),
        // It is reset earlier.
        (&[("ratelimit-policy", "2;w=60"), ("ratelimit", "limit=2, remaining=0, reset=7")], Some(7_000)),
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
                ("ratelimit", r#""a";r=0;t=30, "b";r=0;t=10, "c";r=1;t=600"#),
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
    let fixed = ResponseReader::new().fixed_windows(true);
    let heard = read_at(fixed, 200, &[USED_UP, LIMIT, IN_SECONDS], LATER);
    assert_eq!((pause(&heard), heard.spacing()), (Some((20_000, Some("x-ratelimit"))), None));
    assert!(heard.limits()[0].has_fixed_windows());
    // Without a reset, it waits as without that declaration.
    assert_eq!(read_at(fixed, 200, &[PULLS, PULLS_USED_UP], LATER).wait(), Some(Duration::from_secs(216)));
    assert_eq!(read(200, &[PULLS, PULLS_USED_UP]).wait(), Some(Duration::from_secs(216)));
}

#[test]
fn who_says_that_windows_are_not_fixed_spaces_calls_whatever_the_form_of_a_reset() {
    let sliding = ResponseReader::new().fixed_windows(false);
    let heard = read_at(sliding, 200, &[USED_UP, ("x-ratelimit-limit", "10;w=60"), AT_A_TIME], LATER);
    assert_eq!((pause(&heard), heard.spacing()), (None, Some(Duration::from_secs(6))));
    assert!(!heard.limits()[0].has_fixed_windows());
    assert_eq!(read_at(sliding, 200, &[BURST, BURST_USED_UP], LATER).wait(), Some(Duration::from_secs(1)));
    let denied = read_at(sliding, 429, &[USED_UP, LIMIT, AT_A_TIME], LATER);
    assert_eq!(pause(&denied), Some((20_000, Some("x-ratelimit"))));
}

#[test]
fn a_denial_without_a_time_lasts_until_enough_is_left_for_such_a_call() {
    let tokens = [
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-limit-tokens", "150000"),
        ("x-ratelimit-remaining-tokens", "120"),
        ("x-ratelimit-reset-tokens", "6s"),
    ];
    let wait = |status, fields: &[(&str, &str)], cost| {
        read(status, fields).wait_for(|unit| (unit == "tokens").then_some(cost)).map(|wait| wait.as_millis())
    };
    assert_eq!([0, 120, 121, 500].map(|cost| wait(429, &tokens, cost)), [1_000, 1_000, 6_000, 6_000].map(Some));
    assert_eq!(read(429, &tokens).wait(), Some(Duration::from_secs(1)), "nobody knows the cost");
    assert_eq!(wait(200, &tokens, 500), None);
    let soon = [("retry-after", "2")].into_iter().chain(tokens).collect::<Vec<_>>();
    assert_eq!(wait(429, &soon, 500), Some(2_000), "the denial says how long");
    // As much as is missing flows in.
    let window = [("ratelimit-policy", r#""t";q=6000;qu="tokens";w=60"#), ("ratelimit", r#""t";r=100;t=59"#)];
    assert_eq!([100, 101, 600].map(|cost| wait(429, &window, cost)), [1_000, 1_000, 5_000].map(Some));
    let fixed = ResponseReader::new().fixed_windows(true);
    let denied = read_at(fixed, 429, &window, LATER);
    assert_eq!(denied.wait_for(|_| Some(101)), Some(Duration::from_secs(59)));
    let short = ResponseReader::new().longest_pause(Duration::from_secs(3));
    assert_eq!(read_at(short, 429, &window, LATER).wait_for(|_| Some(600)), Some(Duration::from_secs(3)));
}

#[test]
fn a_403_without_a_time_is_a_denial_only_if_that_is_declared() {
    let github = ResponseReader::new().forbidden_denies(true).default_pause(Duration::from_secs(60));
    for fields in [&[][..], &[LEFT, LIMIT, AT_A_TIME]] {
        assert_eq!(pause(&read_at(github, 403, fields, LATER)), Some((60_000, None)), "{fields:?}");
        assert_eq!(pause(&read_at(github, 404, fields, LATER)), None, "{fields:?}");
    }
    assert_eq!(pause(&read_at(github, 403, &[SOON], LATER)), Some((30_000, Some("retry-after"))));
}

#[test]
fn a_limit_of_another_unit_spaces_calls_by_what_they_cost() {
    let tokens = [
        ("ratelimit-policy", r#""t";q=6000;qu="tokens";w=60, "r";q=60;w=60"#),
        ("ratelimit", r#""t";r=0;t=1, "r";r=0;t=2"#),
    ];
    let wait = |cost| read(200, &tokens).wait_for(|unit| (unit == "tokens").then_some(cost)).unwrap().as_millis();
    // One request is admitted in two seconds, and one token in one.
    assert_eq!(
        [0, 100, 201, 500, 4_999, 6_001, u64::MAX].map(wait),
        [2_000, 2_000, 2_010, 5_000, 49_990, 60_000, 60_000]
    );
    let heard = read(200, &tokens);
    assert_eq!((heard.wait(), heard.spacing()), (Some(Duration::from_secs(2)), Some(Duration::from_secs(2))));
    assert_eq!(heard.wait_for(|_| Some(3)), Some(Duration::from_secs(3)));
    assert_eq!(heard.wait_for(|_| Some(0)), None);
    // Where a reset may be that of all of it, a call waits no longer than until then.
    let sliding = ResponseReader::new().fixed_windows(false);
    let wait = |cost| read_at(sliding, 200, &tokens, LATER).wait_for(|unit| (unit == "tokens").then_some(cost));
    assert_eq!([0, 50, 500].map(wait), [1_000, 1_000, 1_000].map(|ms| Some(Duration::from_millis(ms))));
    // A pause is for all calls.
    assert_eq!(read(429, &[SOON]).wait_for(|_| Some(9)), Some(Duration::from_secs(30)));
}

#[test]
fn a_denial_that_says_no_time_pauses_by_default() {
    let reader = ResponseReader::new().default_pause(Duration::from_secs(60));
    assert_eq!(read_at(reader, 429, &[], LATER).wait(), Some(Duration::from_secs(60)));
    let none = ResponseReader::new().default_pause(Duration::ZERO);
    let heard = read_at(none, 429, &[], LATER);
    assert_eq!((heard.wait(), heard.limits()), (None, &[][..]));
}

#[cfg(feature = "tonic")]
#[test]
fn the_retry_info_of_grpc_says_when_to_come_back_and_what_is_none_is_ignored() {
    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt as _};

    let heard = |code, details: &ErrorDetails| {
        let status = Status::with_error_details(code, "denied", details.clone());
        let response = status.into_http::<()>();
        ResponseReader::new().read(StatusCode::OK, response.headers())
    };
    let in_half_a_minute = ErrorDetails::with_retry_info(Some(Duration::from_secs(30)));
    let asked = Some((30_000, Some("grpc-status-details-bin")));
    assert_eq!(pause(&heard(Code::ResourceExhausted, &in_half_a_minute)), asked);
    assert_eq!(pause(&heard(Code::Unavailable, &in_half_a_minute)), asked);
    assert_eq!(pause(&heard(Code::NotFound, &in_half_a_minute)), None);
    assert_eq!(pause(&heard(Code::ResourceExhausted, &ErrorDetails::new())), Some((1_000, None)));
    let far = ErrorDetails::with_retry_info(Some(Duration::from_secs(1 << 40)));
    assert_eq!(heard(Code::Unavailable, &far).wait(), Some(Duration::from_secs(3_600)));

    for nonsense in ["", "!", "AAAA", "a", "/////w=="] {
        let fields = [("grpc-status", "8"), ("grpc-status-details-bin", nonsense)];
        assert_eq!(pause(&read(200, &fields)), Some((1_000, None)), "{nonsense}");
    }
}
