//! The examples, run as their users run them: in memory, and twice on one Redis.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use escargot::CargoBuild;
use tallygate_tests::server::Server;

/// Returns what an example prints: in memory, on Redis, and once more on the same Redis.
fn printed(example: &str) -> [String; 3] {
    // Another build may have left an old example in its place. With the features of the whole workspace, as the tests are
    // built, nothing is compiled twice.
    let cargo = CargoBuild::new().arg("--workspace").example(example).current_release();
    let binary = cargo.run().expect("the example builds");
    let redis = Server::start();
    let run = |url: &str| {
        let output = binary.command().env("TALLYGATE_URL", url).output().expect("the example starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    ["memory://", &redis.url(), &redis.url()].map(run)
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
        assert_eq!(lines_with(text, &[" 1 × banned: Alice is closed for"]), 1, "{text}");
        assert_eq!(lines_with(text, &[" 1 × welcome, bob"]), 1, "{text}");
    }
    assert_eq!((lines_with(&second, &["alice is closed for"]) > 1, lines_with(&second, &["welcome"])), (true, 1));
}

#[test]
fn a_new_user_has_three_draws_and_a_bot_is_banned() {
    let [memory, first, second] = printed("lottery");
    for text in [&memory, &first] {
        assert_eq!(lines_with(text, &["alice draws"]), 4, "{text}");
        assert!(lines_with(text, &["alice limited: no draw left; the next one comes in"]) >= 1, "{text}");
        assert_eq!(lines_with(text, &["bot   limited: no draw left"]), 10, "{text}");
        assert!(lines_with(text, &["bot   banned: no more draws for"]) >= 1, "{text}");
        let last = text.lines().last().unwrap();
        assert!(last.contains("banned"), "{text}");
    }
    assert_eq!((lines_with(&second, &["bot   banned"]), lines_with(&second, &["bot   draws"])), (16, 0), "{second}");
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
