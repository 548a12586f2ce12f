//! The errors of mistaken texts.

use std::error::Error as _;

use super::*;

#[track_caller]
fn error(text: &str) -> ParseRuleError {
    text.parse::<Rule>().expect_err(text)
}

/// Asserts what the error says after the quoted text.
#[track_caller]
fn assert_error(text: &str, expected: &str) {
    assert_eq!(error(text).to_string(), format!("`{text}` is not a rule: {expected}"));
}

#[test]
fn usual_slips_get_a_suggestion() {
    let slips = [
        ("100/1h", "100 per 1h"),
        ("100/hour", "100 per 1h"),
        ("5/s burst 10", "5 per 1s burst 10"),
        ("n/1h", "n per 1h"),
        ("100 per hour", "100 per 1h"),
        ("100 per 1 h", "100 per 1h"),
        ("100 per 1h30m", "100 per 90m"),
        ("100 per 1 hour 30 min", "100 per 90m"),
        ("100 per 1.5h", "100 per 90m"),
        ("10 per 1w", "10 per 7d"),
        ("10 per month", "10 per 30d"),
        ("100 PER 1H", "100 per 1h"),
        ("About 100 per 1h", "about 100 per 1h"),
        ("~100 per 1h", "about 100 per 1h"),
        ("N per 1h", "n per 1h"),
        ("100 every 2 hours", "100 per 2h"),
        ("100 in 1 h", "100 per 1h"),
        ("100 1h", "100 per 1h"),
        ("100 requests per hour", "100 per 1h"),
        ("at most 100 per 1h", "100 per 1h"),
        ("100x per 1h", "100 per 1h"),
        ("once per 5s", "1 per 5s"),
        ("1,000 per 1h", "1000 per 1h"),
        ("20k tokens/min", "20000 tokens per 1m"),
        ("tokens 500 per 1s", "500 tokens per 1s"),
        ("20_000 Tokens / minute", "20000 tokens per 1m"),
        ("20000 tpm", "20000 tokens per 1m"),
        ("at most 1,000,000 bytes per day", "1000000 bytes per 1d"),
        ("500 tokens per second burst 20k", "500 tokens per 1s burst 20000"),
        ("500 tokens/s brst 9", "500 tokens per 1s burst 9"),
        ("100 requests per 1h", "100 per 1h"),
        ("100 calls an hour", "100 per 1h"),
        ("10k per 1h", "10000 per 1h"),
        ("100 rps", "100 per 1s"),
        ("100 daily", "100 per 1d"),
        ("100 per fixed window of 1h", "100 per fixed 1h"),
        ("100 per 1h named daily", "100 per 1h as daily"),
        ("100 per 1h Burst 5", "100 per 1h burst 5"),
        ("100 per 1h brst 5", "100 per 1h burst 5"),
        ("100 per 1h capacity 5 reset 1 h", "100 per 1h burst 5 reset_after 1h"),
        ("duplicate per 5s", "prevent_duplicate per 5s"),
        ("prevent_duplicates", "prevent_duplicate per 5s"),
        ("prevent_duplicate 5s", "prevent_duplicate per 5s"),
        ("prevent_duplicate per 5 s as x", "prevent_duplicate per 5s as x"),
        ("no duplicate within 5s", "prevent_duplicate per 5s"),
        ("prevent duplicates", "prevent_duplicate per 5s"),
        ("no repeats within 5s as x", "prevent_duplicate per 5s as x"),
        ("concurent 5", "5 concurrent lease 30s"),
        ("concurrency 5 lease 1m", "5 concurrent lease 1m"),
        ("5 parallel lease 30s", "5 concurrent lease 30s"),
        ("5 slots lease 30", "5 concurrent lease 30s"),
        ("5 concurrent calls", "5 concurrent lease 30s"),
        ("5 concurrent leese 90s", "5 concurrent lease 90s"),
        ("5 concurrent ttl 90s shdow", "5 concurrent lease 90s shadow"),
        ("at most 5 in flight", "5 concurrent lease 30s"),
        ("5 requests at the same time for 1 min", "5 concurrent lease 1m"),
        ("10 per 1h dry run", "10 per 1h shadow"),
        ("10 pr 1h in shadow", "10 per 1h shadow"),
        ("aprox 10 per 1h", "about 10 per 1h"),
        ("10 per fxied 1h", "10 per fixed 1h"),
        ("10 per 1h fixed window", "10 per fixed 1h"),
        ("fixed window 10 per 1h", "10 per fixed 1h"),
        ("sliding window 10 per 1h", "10 per 1h"),
        ("10 per sliding 1h", "10 per 1h"),
        ("token bucket 10 per 1h", "10 per 1h bucket"),
        ("10 per 1h leaky bucket", "10 per 1h bucket"),
        ("10 per 1h burst 20 start 5", "10 per 1h burst 20 initial 5"),
        ("10 per 1h burst 20 reset after 1d", "10 per 1h burst 20 reset_after 1d"),
        ("ten per hour", "10 per 1h"),
        ("10/minute", "10 per 1m"),
        ("10 per minute", "10 per 1m"),
        ("10 requests/min", "10 per 1m"),
        ("10 Requests / minute", "10 per 1m"),
        ("10r/s", "10 per 1s"),
        ("10req/min", "10 per 1m"),
        ("10/60", "10 per 1m"),
        ("10 per 60", "10 per 1m"),
        ("10 permits every 60 seconds", "10 per 1m"),
        ("rate=10r/s burst=5", "10 per 1s burst 5"),
        ("limit: 10, window: 60s", "10 per 1m"),
        ("rule(count = 10, per = \"60s\")", "10 per 1m"),
        ("count = 10, per = 1h, name = daily", "10 per 1h as daily"),
    ];
    for (text, expected) in slips {
        let error = error(text);
        assert_eq!(error.suggestion(), Some(expected), "{text}");
        assert!(error.to_string().ends_with(&format!("; did you mean `{expected}`?")), "{error}");
    }
}

#[cfg(feature = "cron")]
#[test]
fn a_schedule_without_quotes_gets_a_suggestion() {
    assert_eq!(error("10 per 0 0 6 * * *").suggestion(), Some("10 per \"0 0 6 * * *\" UTC"));
    let with_zone = error("10 per 0 0 6 ? * MON-FRI Asia/Shanghai as work");
    assert_eq!(with_zone.suggestion(), Some("10 per \"0 0 6 ? * MON-FRI\" Asia/Shanghai as work"));
}

#[test]
fn the_error_names_the_mistake() {
    assert_error("100/1h", "the count `100/1h` is not a whole number; did you mean `100 per 1h`?");
    assert_error("100 rps", "after the count, `rps` stands in place of `per`; did you mean `100 per 1s`?");
    assert_error("10 per 1w", "the duration `1w` has the unknown unit `w`; did you mean `10 per 7d`?");
}

#[test]
fn the_error_gives_the_remedy_where_the_meaning_is_unknown() {
    let count = "write a whole number, like `100 per 1h`, or `n` for a count that each call gives";
    assert_error("per 1h", &format!("the count is missing; {count}"));
    assert_error("hundred per 1h", &format!("the count `hundred` is not a whole number; {count}"));
    assert_error("-5 per 1h", &format!("the count `-5` is not a whole number; {count}"));
    assert_error("\"5\" per 1h", &format!("the count `5` is not a whole number; {count}"));
    assert_error("99999999999999999999 per 1h", "the count `99999999999999999999` is too great; write a smaller one");
    assert_error("100", "`per` and the window are missing after the count; write a window, like `100 per 1h`");
    assert_error("100 per", "the duration after `per` is missing; write a whole number and a unit, like `per 1h`");
    let duration = "write a whole number and one of `ms`, `s`, `m`, `h`, `d`, like `60s`";
    assert_error("100 per -1h", &format!("the duration `-1h` does not start with a whole number; {duration}"));
    assert_error(
        "100 per fixed",
        "the duration after `per` is missing; write a whole number and a unit, like `per 1h`",
    );
}

#[test]
fn the_error_of_a_mistaken_unit_gives_the_remedy() {
    let fault = "`requests` means calls, which a rule counts without a unit";
    assert_error("100 requests per 1h", &format!("{fault}; did you mean `100 per 1h`?"));
    assert_error("9 Tokens per 1h", "`Tokens` is not the name of a unit; did you mean `9 tokens per 1h`?");
    assert_error("9 input-tokens per 1h", "`input-tokens` is not the name of a unit; did you mean `input_tokens`?");
    let grammar = "is a word of the text of rules, and not the name of a unit; write another, like `tokens`";
    assert_error("9 lease per 1h", &format!("`lease` {grammar}"));
    assert_error("9 tokens concurrent lease 30s", "`concurrent` counts calls and not `tokens`; remove `tokens`");
    assert_error(
        "prevent_duplicate 1 tokens per 5s",
        "`prevent_duplicate` counts calls and not `tokens`; remove `tokens`",
    );
    assert_error("9 tokens", "after the count, `tokens` stands in place of `per`; write a window, like `100 per 1h`");
}

#[test]
fn the_error_of_a_mistaken_option_gives_the_remedy() {
    let options = "there are `burst`, `bucket`, `initial`, `reset_after`, `shadow`, `as`";
    assert_error("5 per 1s forever", &format!("after the window, `forever` is unknown; {options}"));
    assert_error("5 per 1s \"x\"", &format!("after the window, `x` is unknown; {options}"));
    assert_error("5 per 1s burst", "the number after `burst` is missing; write a whole number, like `burst 100`");
    assert_error("5 per 1s burst x", "`x` after `burst` is not a whole number; write a whole number, like `burst 100`");
    assert_error("5 per 1s burst 3 burst 4", "`burst` is repeated; keep one of them");
    assert_error("5 per 1s initial 3", "`initial` is for token buckets; write `bucket` or `burst 100` before it");
    assert_error("about 5 per 1s burst 5", "`about` and `burst` are different algorithms; keep one of them");
    assert_error("about 5 per fixed 1s", "`about` and `fixed` are different algorithms; keep one of them");
    assert_error("prevent_duplicate per 5s burst 5", "`prevent_duplicate` has no `burst`; remove it");
    assert_error("prevent_duplicate 2", "`prevent_duplicate` admits one call and not 2; remove the `2`");
}

#[test]
fn the_error_of_a_mistaken_concurrency_limit_gives_the_remedy() {
    assert_error("10 concurrent", "`lease` is missing after `concurrent`; did you mean `10 concurrent lease 30s`?");
    assert_error("10 concurrent forever", "`lease` is missing after `concurrent`; write `10 concurrent lease 30s`");
    assert_error("10 concurrent lease 30s burst 5", "`concurrent` has no `burst`; remove it");
    for text in ["5 tokens concurrent lease 30s", "5 concurrent tokens lease 30s"] {
        assert_error(text, "`concurrent` counts calls and not `tokens`; remove `tokens`");
    }
    assert_error(
        "5 concurrent calls lease 30s",
        "`lease` is missing after `concurrent`; did you mean `5 concurrent lease 30s`?",
    );
    assert_error(
        "about 10 concurrent lease 30s",
        "`about` and `concurrent` are different algorithms; keep one of them",
    );
}

#[test]
fn the_error_of_a_mistaken_name_gives_the_remedy() {
    assert_error("5 per 1s as", "the name after `as` is missing; write one, like `as daily` or `as \"each day\"`");
    assert_error("5 per 1s as a/b", "the name `a/b` needs quotes; write `as \"a/b\"`");
    assert_error("5 per 1s as \"x", "the quote \" is not closed; write \" at its end");
}

#[cfg(feature = "cron")]
#[test]
fn the_error_of_a_schedule_is_the_one_of_its_expression_or_its_zone() {
    for (text, expression, zone) in [
        ("10 per \"0 6 * * *\" Asia/Shanghai", "0 6 * * *", "Asia/Shanghai"),
        ("10 per @dayly", "@dayly", "UTC"),
        ("10 per @daily Asia/Shangai", "@daily", "Asia/Shangai"),
    ] {
        let source = crate::cron::Schedule::parse(expression, zone).unwrap_err();
        assert_error(text, &source.to_string());
        assert_eq!(error(text).source().unwrap().to_string(), source.to_string());
    }
    assert_error("5 per fixed @daily", "`fixed` and `cron` are different algorithms; keep one of them");
}

#[test]
fn the_source_of_a_mistaken_duration_is_its_error() {
    let source = crate::duration::DurationError::NoUnit;
    assert_eq!(error("10 per 5").source().unwrap().to_string(), source.to_string());
    assert!(error("per 5s").source().is_none());
}

#[test]
fn an_empty_text_is_an_error() {
    for text in ["", " \n"] {
        assert_eq!(error(text).to_string(), "a rule is missing; write one, like `100 per 1h`");
    }
}

#[test]
fn a_list_is_not_one_rule() {
    assert_error("1 per 1m, 2 per 2m", "`,` separates the rules of a list, but one rule is expected; remove it");
}

#[test]
fn a_sign_that_separates_no_rules_is_answered_with_the_comma() {
    for text in ["1 per 1m; 2 per 2m", "1 per 1m | 2 per 2m"] {
        let sign = text.matches([';', '|']).next().unwrap();
        let expected = format!("`{text}` is not a rule: `{sign}` does not separate rules; write `,` between them");
        assert_eq!(error(text).to_string(), expected);
        assert_eq!(parse_rules(text).unwrap_err()[0].to_string(), expected);
    }
    assert_error("1 per 1m and 2 per 2m", "after the window, `and` is unknown; write `,` between two rules");
}

#[test]
fn a_list_has_an_error_for_each_mistaken_rule() {
    let errors = parse_rules("1 per 1m, 10 per day · \"x\",, 5 per 1s").unwrap_err();
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 3);
    assert!(texts[0].ends_with("did you mean `10 per 1d`?"), "{}", texts[0]);
    assert!(texts[1].starts_with("`\"x\"` is not a rule: the count `x`"), "{}", texts[1]);
    let missing = "a rule is missing beside a separator; write one, like `100 per 1h`, or remove the separator";
    assert_eq!(texts[2], missing);
    assert_eq!(parse_rules("1 per 1m,").unwrap_err()[0].to_string(), missing);
    assert_eq!(parse_rules("").unwrap_err()[0].to_string(), "a rule is missing; write one, like `100 per 1h`");
}
