//! Whatever a server sends is read within bounds.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 16] = [
    "grpc-status-details-bin",
    "grpc-retry-pushback-ms",
    "age",
    "date",
    "retry-after",
    "retry-after-ms",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-tokens-reset",
];

const NAMED: [&str; 8] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-limit-minute",
    "x-ratelimit-remaining-minute",
    "x-ratelimit-remaining-tokens",
    "ratelimit-limit",
    "ratelimit-policy",
];
const COUNTS: [&str; 7] = ["0", "5", "10;w=60", "10;w=1", "10", "10, 10;w=1, 50;w=60", "5;w=3600"];

/// Text that is nearly right.
const NEARLY: &str = r#"([0-9]{1,20}|["a-z=;, .:+-]{1,4}|r=0|t=|w=|q=|ms|[hms]|GMT|T|Z|Sun, 06 Nov 1994 |08:49:37|2027-01-15|"a";r=0){0,6}"#;

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..40), NEARLY.prop_map(String::into_bytes)]
}

proptest! {
    #[test]
    fn no_answer_makes_the_reader_fail_or_pause_for_longer_than_the_longest(
        status in prop_oneof![Just(200_u16), Just(403), Just(429), Just(503), 100_u16..1_000],
        lines in proptest::collection::vec((proptest::sample::select(&NAMES[..]), value()), 0..8),
        longest_ms in 0_u64..10_000_000_000,
        now in any::<u32>(),
        are_fixed in any::<Option<bool>>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(*name, value);
            }
        }
        let longest = Duration::from_millis(longest_ms);
        let reader = ResponseReader::new().longest_pause(longest);
        let reader = are_fixed.map_or(reader, |are_fixed| reader.fixed_windows(are_fixed));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now.into());
        let heard = reader.read_at(StatusCode::from_u16(status).unwrap(), &headers, now);

        prop_assert!(heard.wait().is_none_or(|wait| wait <= longest && !wait.is_zero()), "{heard:?}");
        prop_assert!(heard.wait_for(|_| Some(u64::MAX)).is_none_or(|wait| wait <= longest), "{heard:?}");
        prop_assert!(heard.limits().len() <= 32);
        let farthest = longest.max(Duration::from_secs(400 * 86_400));
        prop_assert!(heard.limits().iter().all(|limit| limit.reset().is_none_or(|reset| reset <= farthest)));
        if status == 429 && longest >= Duration::from_secs(1) {
            let is_over = |value: &HeardPause| value.duration().is_zero();
            prop_assert!(heard.pause().is_none_or(|pause| !is_over(pause)));
        }
    }

    #[test]
    fn the_order_of_lines_changes_nothing_that_is_heard(
        lines in proptest::collection::vec(
            (proptest::sample::select(&NAMED[..]), proptest::sample::select(&COUNTS[..])),
            1..6,
        ),
    ) {
        let sorted = |fields: Vec<(&str, &str)>| {
            let heard = read(200, &fields);
            let mut limits: Vec<_> = heard.limits().iter().map(|limit| format!("{limit:?}")).collect();
            limits.sort_unstable();
            (heard.wait(), limits)
        };
        let reversed = lines.iter().rev().copied().collect();
        prop_assert_eq!(sorted(lines), sorted(reversed));
    }

    #[test]
    fn a_later_time_is_never_a_shorter_pause(seconds in 0_u64..4_000, more in 0_u64..4_000, form in 0..3) {
        let text = |seconds: u64| match form {
            0 => seconds.to_string(),
            1 => (LATER + seconds).to_string(),
            _ => format!("{seconds}s"),
        };
        let wait = |seconds| read(503, &[("retry-after", &text(seconds))]).wait();
        prop_assert!(wait(seconds) <= wait(seconds + more));
    }

    #[test]
    fn a_larger_number_is_never_a_shorter_pause_unless_it_is_a_point_in_time(
        (one, one_shift) in (any::<u128>(), 0..128_u32),
        (other, other_shift) in (any::<u128>(), 0..128_u32),
    ) {
        let day_ago = u128::from(LATER - 86_400);
        let is_point_in_time = |number: u128| {
            (day_ago..100_000_000_000).contains(&number) || (day_ago * 1_000..100_000_000_000_000).contains(&number)
        };
        let mut numbers = [one >> one_shift, other >> other_shift];
        numbers.sort_unstable();
        prop_assume!(!numbers.into_iter().any(is_point_in_time));
        let [smaller, larger] = numbers.map(|number| read(503, &[("retry-after", &number.to_string())]).wait());
        prop_assert!(smaller <= larger, "{numbers:?}: {smaller:?} and {larger:?}");
    }
}
