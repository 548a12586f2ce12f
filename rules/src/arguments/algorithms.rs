//! The names of algorithms.

use crate::suggestion::{meant, snake_case};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AlgorithmName {
    SlidingWindow,
    FixedWindow,
    SlidingCounter,
    TokenBucket,
    /// The argument `cron` chooses this algorithm, which has no name.
    Cron,
}

const ALGORITHMS: [(&str, AlgorithmName); 4] = [
    ("sliding_window", AlgorithmName::SlidingWindow),
    ("fixed_window", AlgorithmName::FixedWindow),
    ("sliding_counter", AlgorithmName::SlidingCounter),
    ("token_bucket", AlgorithmName::TokenBucket),
];

/// Words that are no algorithms here, and what to write instead.
const ELSEWHERE: [(&[&str], &str); 2] = [
    (&["cron", "schedule", "calendar"], "write `cron = \"0 0 6 * * *\"` instead of it and of `per`"),
    (
        &["concurrency", "concurrent", "semaphore", "in_flight", "bulkhead"],
        "write `concurrency(limit = 10, lease = \"30s\")` instead of the rule; in a file, `{ limit = 10, lease = \"30s\" }`",
    ),
];

impl AlgorithmName {
    /// Returns the algorithm of that name, or the error with the name that was probably meant.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let known = ALGORITHMS.iter().find(|(known, _)| *known == name);
        known.map(|&(_, algorithm)| algorithm).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> String {
    let known = ALGORITHMS.map(|(name, _)| name);
    let word = snake_case(name);
    let elsewhere = ELSEWHERE.iter().find(|(words, _)| words.contains(&&*word)).map(|(_, remedy)| *remedy);
    let remedy = match (elsewhere, meant(name, &known)) {
        (Some(remedy), _) => remedy.to_owned(),
        (None, Some(meant)) => format!("did you mean `{meant}`?"),
        (None, None) => format!("there are `{}`, and `cron = \"…\"`", known.join("`, `")),
    };
    format!("unknown algorithm `{name}`; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_other_libraries_are_answered_with_ours() {
        for (name, meant) in [
            ("gcra", "token_bucket"),
            ("leaky-bucket", "token_bucket"),
            ("TokenBucket", "token_bucket"),
            ("sliding log", "sliding_window"),
            ("moving-window", "sliding_window"),
            ("sliding window", "sliding_window"),
            ("SlidingWindow", "sliding_window"),
            ("fixed-window", "fixed_window"),
            ("FIXED_WINDOW", "fixed_window"),
            ("sliding-window-counter", "sliding_counter"),
            ("fixd_window", "fixed_window"),
        ] {
            let text = AlgorithmName::named(name).unwrap_err();
            assert_eq!(text, format!("unknown algorithm `{name}`; did you mean `{meant}`?"));
        }
        let text = AlgorithmName::named("semaphore").unwrap_err();
        assert!(text.contains("write `concurrency(limit = 10, lease = \"30s\")`"), "{text}");
        for (name, algorithm) in ALGORITHMS {
            assert_eq!(AlgorithmName::named(name).unwrap(), algorithm);
        }
    }
}
