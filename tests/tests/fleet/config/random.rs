//! Any text is read or refused, and what is refused has a place in it.

use proptest::prelude::*;
use tallygate::Limiter;
use tallygate::config::Policies;
use tallygate_harness::length::cases;

/// What files consist of.
const PIECES: [&str; 42] = [
    "[policy.a]",
    "[policy.\"b.c\"]",
    "[policy]",
    "[[policy]]",
    "rules",
    "key",
    "match",
    "ban",
    "shadow",
    "on_outage",
    "deadline",
    "warn_at",
    "0.8",
    "count",
    "per",
    "algorithm",
    "cron",
    "tz",
    "path",
    "methods",
    " = ",
    "=",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\n",
    "'1 per 60s'",
    "\"10 per day\"",
    "'token_bucket'",
    "'0 0 6 * * *'",
    "'60s'",
    "'日本'",
    "'{a'",
    "10",
    "-1",
    "1e3",
    "true",
    "\"",
    "'",
    "# 注\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(500, 20_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_any_text_is_applied_or_has_mistakes_with_places(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24),
    ) {
        let text = pieces.concat();
        match Policies::from_toml(&text) {
            Ok(policies) => prop_assert!(Limiter::in_memory().apply(&policies).is_ok(), "{}", text),
            Err(error) => {
                prop_assert!(!error.mistakes().is_empty());
                for mistake in error.mistakes() {
                    let line = text.split('\n').nth(mistake.line() - 1);
                    let length = line.map(|line| line.chars().count());
                    prop_assert!(length.is_some_and(|length| mistake.column() <= length + 1), "{mistake} in {text:?}");
                    prop_assert!(!mistake.message().is_empty() && !mistake.message().contains('\n'), "{mistake}");
                }
            }
        }
    }
}
