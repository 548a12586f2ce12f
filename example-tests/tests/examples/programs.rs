//! The examples that run to their end, run as their users run them: in memory, and twice on one Redis.

use std::fs;

use tallygate_harness::server::Server;

use crate::built;

/// What the output of an example has where Redis took longer to answer than the example waits.
const LATE: [&str; 3] = ["unavailable", "no answer within", "no connection within"];

/// Returns what an example prints: in memory, on Redis, and once more on the same Redis.
fn printed(example: &str) -> [String; 3] {
    // On a busy machine, an answer may take longer than the deadline that the examples have.
    (0..5).find_map(|_| printed_once(example)).expect("Redis answers in time, once in five runs")
}

/// Runs the example once. Returns what it prints, if Redis answers in time.
fn printed_once(example: &str) -> Option<[String; 3]> {
    let binary = built::program(example);
    let redis = Server::start();
    let run = |url: &str| {
        let output = binary.command().env("TALLYGATE_URL", url).output().expect("the example starts");
        let [printed, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let is_late = LATE.iter().any(|late| printed.contains(late) || errors.contains(late));
        assert!(is_late || output.status.success(), "{printed}{errors}");
        (!is_late).then_some(printed)
    };
    Some([run("memory://")?, run(&redis.url())?, run(&redis.url())?])
}

/// Counts the lines with all those parts.
fn lines_with(text: &str, parts: &[&str]) -> usize {
    text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
}

#[test]
fn only_failed_logins_count_and_repeated_failures_are_banned() {
    let [memory, first, second] = printed("login");
    for text in [&memory, &first] {
        assert_eq!(lines_with(text, &["10 × welcome, alice"]), 1, "{text}");
        assert_eq!(lines_with(text, &[" 5 × wrong password"]), 1, "{text}");
        assert!(lines_with(text, &["limited: 5 wrong passwords in 10m are enough; try again in"]) >= 1, "{text}");
        assert_eq!(lines_with(text, &[" 1 × banned: Alice is closed to you for"]), 1, "{text}");
        assert_eq!(lines_with(text, &[" 1 × welcome, alice"]), 1, "{text}");
    }
    assert!(lines_with(&second, &["alice is closed to you for"]) >= 1, "{second}");
    assert_eq!(lines_with(&second, &["welcome"]), 2, "{second}");
}

#[test]
fn the_same_form_is_refused_unless_it_has_failed() {
    let [memory, first, second] = printed("form");
    for text in [&memory, &first] {
        assert_eq!(lines_with(text, &["zoe gets 2 × tea"]), 1, "{text}");
        assert_eq!(lines_with(text, &["zoe: duplicate: this order is being placed already"]), 1, "{text}");
        assert_eq!(lines_with(text, &["zoe gets 3 × tea"]), 1, "{text}");
        assert_eq!(lines_with(text, &["ann gets 2 × tea"]), 1, "{text}");
        assert_eq!(lines_with(text, &["bob: out of stock"]), 2, "{text}");
    }
    assert_eq!((lines_with(&second, &["duplicate:"]), lines_with(&second, &["out of stock"])), (4, 2), "{second}");
}

#[test]
fn a_new_user_has_three_draws_and_a_bot_is_banned() {
    let [memory, first, second] = printed("lottery");
    // In each run, also where others have drawn before.
    for text in [&memory, &first, &second] {
        let of_alice: Vec<_> = text.lines().filter(|line| line.contains("alice-")).collect();
        assert!(of_alice[..3].iter().all(|line| line.contains(" draws ")), "{text}");
        assert_eq!(lines_with(text, &["alice-", " draws "]), 4, "{text}");
        assert!(lines_with(text, &["alice-", " limited: no draw left; the next one comes in"]) >= 1, "{text}");
    }
    for text in [&memory, &first] {
        assert_eq!(lines_with(text, &["  bot ", "limited: no draw left"]), 10, "{text}");
        assert!(lines_with(text, &["  bot ", "banned: no more draws for"]) >= 1, "{text}");
        let last = text.lines().last().unwrap();
        assert!(last.contains("banned"), "{text}");
    }
    assert_eq!((lines_with(&second, &["  bot "]), lines_with(&second, &["  bot ", " banned: "])), (16, 16), "{second}");
}

#[test]
fn pages_are_counted_by_plan_and_wait_for_their_pace() {
    let [memory, first, second] = printed("quota");
    let rejected = "limited: your plan has 20 pages a day; these are too many";
    for text in [&memory, &first] {
        assert_eq!(lines_with(text, &["8 pages translated"]), 3, "{text}");
        assert_eq!(lines_with(text, &["4 pages translated"]), 1, "{text}");
        assert_eq!(lines_with(text, &[rejected]), 1, "{text}");
        assert_eq!(lines_with(text, &["limited: no more than 10 pages at once (never)"]), 1, "{text}");
    }
    assert_eq!((lines_with(&second, &[rejected]), lines_with(&second, &["8 pages translated"])), (4, 1), "{second}");
}

#[test]
fn support_resets_and_raises_the_limit_of_one_customer() {
    for text in printed("support") {
        assert_eq!(lines_with(&text, &["a code for 13800000000"]), 2 + 1 + 4, "{text}");
        assert_eq!(lines_with(&text, &["a code for 13900000000"]), 2, "{text}");
        assert_eq!(lines_with(&text, &["limited: too many requests: at most 2 per 1h"]), 2, "{text}");
        assert_eq!(lines_with(&text, &["limited: too many requests: at most 5 per 1h"]), 1, "{text}");
        assert_eq!(lines_with(&text, &["2 per 1h as hourly: 0 of 2 left"]), 1, "{text}");
        assert_eq!(lines_with(&text, &["sms.send: hourly = 5 per 1h", " for "]), 1, "{text}");
    }
}

#[test]
fn two_sets_of_limits_are_compared_on_a_trace_of_a_file_whose_mistakes_are_left_out() {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let calls = (0..4).map(|second| format!("2027-01-15T08:00:0{second}Z,alice\n"));
    fs::write(trace.path(), format!("time,subject\n{}yesterday,bob\n", calls.collect::<String>())).unwrap();
    let mut command = built::program("simulation").command();
    let output = command.arg(trace.path()).args(["1 per 1m", "3 per 1m"]).output().expect("the example starts");
    let (printed, mistakes) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && mistakes.starts_with("line 6: `time` must be like"), "{mistakes}");
    assert_eq!(lines_with(&printed, &["4 calls: 1 admitted, 3 denied (3 by `1 per 1m`)"]), 1, "{printed}");
    assert_eq!(lines_with(&printed, &["4 calls: 2 decided alike, 0 newly denied, 2 newly admitted"]), 1, "{printed}");
}
