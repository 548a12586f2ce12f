//! Policies with rules whose count each call gives.

use tallygate::{Ban, Permit, Policy, Rule, Subject, TokenBucket};

use crate::console::Console;
use crate::seeded::{HOUR, MINUTE, Seeded, limiter, listed};

/// Makes calls with a count of 5 for the first rule, which all are admitted, and waits until the policy is listed.
async fn calls(console: &Console<'_>, policy: &Policy, subject: &str, number: usize) -> Vec<Permit> {
    let fleet = limiter(console.url, "tallygate").await;
    let mut permits = Vec::new();
    for _ in 0..number {
        let decided = fleet.check(&policy.with_counts([5]), &Subject::of(subject)).await.unwrap();
        permits.push(decided.into_result().unwrap());
    }
    listed(&fleet, 3).await;
    permits
}

/// Returns a policy with a rule of each call's count in front of others.
fn plan(rule: Rule, others: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("plan").key("{user}").rule(rule.varying()).rules(others).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_subject_is_denied_by_a_count_that_each_call_gives() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    calls(&console, &plan(Rule::sliding_window(1, HOUR), []), "alice", 3).await;
    let words = "undecided\nthis leaves out rule 0, as its count is the call's; say it by --plan or --count\n";
    let printed = console.run("peek plan alice").expect(1);
    assert!(printed.out.starts_with(&format!("{words}0   n per 1h   3 used   resets in ")), "{printed:?}");
    let printed = console.run("peek plan bob").expect(1);
    assert_eq!(printed.out, format!("{words}0   n per 1h   0 used   unused\n"));
    let json = console.run("peek plan alice --json").expect(1).json();
    assert!(json["admitted"].is_null() && json["denied"].is_null(), "{json}");
    let rule = &json["rules"][0];
    assert_eq!((&rule["rule"], &rule["used"]), (&"n per 1h".into(), &3.into()));
    assert!(rule["limit"].is_null() && rule["remaining"].is_null() && rule["concurrent"].is_null(), "{json}");
    assert!((1..=3_600_000).contains(&rule["reset_ms"].as_u64().unwrap()), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_count_that_each_call_gives_the_other_rules_decide() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let policy = plan(Rule::sliding_window(1, HOUR).named("paid"), [Rule::sliding_window(2, MINUTE)]);
    calls(&console, &policy, "alice", 2).await;
    let printed = console.run("peek plan alice").expect(1);
    let lines: Vec<_> = printed.out.lines().collect();
    assert!(lines[0].starts_with("denied for ") && lines[0].ends_with(" by rule 1"), "{printed:?}");
    assert_eq!(lines[1], "this leaves out rule 0, as its count is the call's; say it by --plan or --count");
    assert!(lines[2].starts_with("0   n per 1h as paid   2 used   resets in "), "{printed:?}");
    let printed = console.run("peek plan bob").expect(0);
    assert!(printed.out.starts_with("admitted\nthis leaves out rule 0, "), "{printed:?}");
    assert_eq!(console.run("peek plan alice --json").expect(1).json()["admitted"], false);
    assert_eq!(console.run("peek plan bob --json").expect(0).json()["admitted"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_gives_the_count_that_each_call_gave() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let policy = plan(Rule::sliding_window(1, HOUR).named("paid"), [Rule::sliding_window(2, MINUTE)]);
    calls(&console, &policy, "alice", 1).await;
    console.run_words(&["override", "plan", "7 per 1h", "--rule", "paid", "--yes"]).expect(0);
    let printed = console.run("peek plan alice").expect(0);
    assert!(printed.out.starts_with("admitted\n0   7 per 1h as paid   6 left   "), "{printed:?}");
    // A rule on another place is left out as it was.
    console.run_words(&["override", "plan", "9 per 1m", "--rule", "1", "--yes"]).expect(0);
    let printed = console.run("peek plan alice").expect(0);
    assert!(printed.out.starts_with("admitted\nthis leaves out rule 0, "), "{printed:?}");
    assert!(printed.out.contains("1   9 per 1m           8 left"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_bucket_whose_count_each_call_gives_is_not_shown() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let bucket = TokenBucket::new(30 * 24 * HOUR).with_capacity(3).with_initial(3);
    let policy = plan(Rule::from_bucket(1, bucket).named("paid"), [Rule::sliding_window(9, HOUR)]);
    // The bucket is empty, and would fill slowly.
    calls(&console, &policy, "alice", 3).await;
    let printed = console.run("peek plan alice").expect(0);
    let lines: Vec<_> = printed.out.lines().collect();
    assert_eq!(
        lines[..2],
        ["admitted", "this leaves out rule 0, as its count is the call's; say it by --plan or --count"]
    );
    assert!(lines[2].starts_with("0   n per 30d ") && lines[2].ends_with(" as paid"), "{printed:?}");
    assert!(lines[3].contains("6 left   resets in "), "{printed:?}");
    let json = console.run("peek plan alice --json").expect(0).json();
    let rule = &json["rules"][0];
    assert!(rule["used"].is_null() && rule["reset_ms"].is_null() && rule["limit"].is_null(), "{json}");
    // More than it holds is denied whatever the count is.
    let printed = console.run("peek plan bob --cost 4").expect(1);
    assert!(printed.out.starts_with("denied for good by rule 0 (paid)\n0   "), "{printed:?}");
    assert_eq!(console.run("top plan").expect(0).out, "alice   33 %   3 of 9 per 1h\n1 of 1 subject\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_are_counted_where_each_call_gives_their_limit() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let permits = calls(&console, &plan(Rule::concurrency(1, HOUR), []), "acme", 2).await;
    let printed = console.run("peek plan acme").expect(1);
    assert!(printed.out.contains("0   n concurrent lease 1h   2 concurrent   leases end in "), "{printed:?}");
    assert!(printed.out.starts_with("undecided\n"), "{printed:?}");
    let json = console.run("peek plan acme --json").expect(1).json();
    assert!(json["admitted"].is_null() && json["rules"][0]["concurrent"] == 2, "{json}");
    assert_eq!(console.run("top plan").expect(0).out, "acme   2 of n concurrent\n1 of 1 subject\n");
    drop(permits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_denies_where_each_call_gives_the_counts() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let policy = Policy::builder("plan").key("{user}").rule(Rule::sliding_window(1, HOUR).varying());
    let policy = policy.ban(Ban::new(20, 10 * MINUTE, HOUR)).build().unwrap();
    calls(&console, &policy, "alice", 1).await;
    console.run("ban plan alice --yes").expect(0);
    assert!(console.run("peek plan alice").expect(1).out.starts_with("banned for "));
    assert_eq!(console.run("peek plan alice --json").expect(1).json()["admitted"], false);
    let printed = console.run("top plan --by wait").expect(0);
    assert!(printed.out.starts_with("alice   1 of n per 1h   denied for "), "{printed:?}");
    console.run("unban plan alice --yes").expect(0);
    assert!(console.run("peek plan alice").expect(1).out.starts_with("undecided\n"));
    console.run("reset plan alice --yes").expect(0);
    let printed = console.run("peek plan alice").expect(1).out;
    assert!(printed.starts_with("undecided\n") && printed.ends_with("0   n per 1h   0 used   unused\n"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_used_most_comes_first_where_each_call_gives_the_counts() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let policy = plan(Rule::sliding_window(1, HOUR), []);
    calls(&console, &policy, "alice", 1).await;
    calls(&console, &policy, "bob", 3).await;
    let printed = console.run("top plan").expect(0);
    assert_eq!(printed.out, "bob     3 of n per 1h\nalice   1 of n per 1h\n2 of 2 subjects\n");
    let printed = console.run("top plan --by wait").expect(0);
    assert_eq!(printed.out, "nobody is denied by plan; 2 subjects looked at\n");
    let json = console.run("top plan --limit 1 --json").expect(0).json();
    let first = &json["top"][0];
    assert_eq!((&first["subject"], &first["denied"]), (&"bob".into(), &false.into()));
    assert!(first["share"].is_null() && first["rules"][0]["limit"].is_null(), "{json}");
    assert_eq!(first["rules"][0]["used"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn subjects_with_a_known_share_come_before_the_others() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let policy = plan(Rule::sliding_window(1, HOUR), [Rule::sliding_window(100, MINUTE)]);
    calls(&console, &policy, "alice", 1).await;
    calls(&console, &policy, "bob", 3).await;
    let shown = "bob     3 %   3 of n per 1h · 3 of 100 per 1m\nalice   1 %   1 of n per 1h · 1 of 100 per 1m\n";
    assert_eq!(console.run("top plan").expect(0).out, format!("{shown}2 of 2 subjects\n"));
}
