//! `pause` and `resume`: close a subject because the other side of its calls has said so.

use std::time::Duration;

use tallygate::{Policy, Rule, Subject};
use tallygate_harness::until::until_found;

use crate::seeded::{HOUR, Seeded, limiter};

/// The policy for calls to others.
fn partner() -> Policy {
    let calls = Rule::sliding_window(50, Duration::from_secs(1));
    Policy::builder("partner").key("{account}").rule(calls).pausable().build().unwrap()
}

/// Waits until the policy is listed. Nothing is counted.
pub(crate) async fn begin(seeded: &Seeded) {
    let fleet = limiter(seeded.console().url, "tallygate").await;
    assert!(fleet.check(&partner(), &Subject::of("acme")).await.unwrap().is_allowed());
    fleet.check(&partner(), &Subject::of("acme")).reset().await.unwrap();
    let listed = async || fleet.registered_policies().await.unwrap().find("partner").is_some();
    until_found("the policy is listed", listed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_for_the_fleet_until_it_is_ended() {
    let seeded = Seeded::start().await;
    begin(&seeded).await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let (policy, acme) = (partner(), Subject::of("acme"));
    let paused = console.run("pause partner acme --for 30m --yes").expect(0);
    assert_eq!(paused.out, "acme is paused under partner for 30m\n");
    assert!(!fleet.check(&policy, &acme).await.unwrap().is_allowed());
    let json = console.run("pause partner acme --for 1m --yes --json").expect(0).json();
    // The shorter one has not shortened it.
    assert_eq!((&json["policy"], &json["paused"]), (&"partner".into(), &"acme".into()));
    assert!(json["duration_ms"].as_u64().unwrap() > 600_000, "{json}");
    let longer = console.run("pause partner acme --for 1m --yes").expect(0).out;
    assert!(
        longer.starts_with("acme stays paused under partner for ") && longer.ends_with("as a longer pause holds\n"),
        "{longer}"
    );
    let peeked = console.run("peek partner acme --json").expect(1).json();
    assert_eq!(peeked["denied"]["kind"], "paused");
    assert!(peeked["denied"]["retry_after_ms"].as_u64().unwrap() > 600_000, "{peeked}");
    assert!(console.run("peek partner acme").expect(1).out.starts_with("paused for "));
    let resumed = console.run("resume partner acme --yes").expect(0);
    assert_eq!(resumed.out, "acme is not paused under partner\n");
    console.run("peek partner acme").expect(0);
    until_found("the program calls again", async || fleet.check(&policy, &acme).await.unwrap().is_allowed()).await;
    let json = console.run("resume partner acme --yes --json").expect(0).json();
    assert_eq!(json, serde_json::json!({ "policy": "partner", "resumed": "acme" }));
}

fn has_line(text: &str, parts: &[&str]) -> bool {
    text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subject_is_paused_that_the_policy_lets_be_paused() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let calls = || Rule::sliding_window(50, HOUR);
    let rules = Policy::builder("hosts").key("{account}").rule(calls()).rule_on("host", calls());
    let policy = rules.key_on("host", "host:{host}").pausable_on("host").build().unwrap();
    let acme = Subject::of("acme");
    let is_allowed = async |host: &str| {
        let host = Subject::from_rendered(&format!("host:{host}")).unwrap();
        fleet.check(&policy, &acme).subject("host", &host).await.unwrap().is_allowed()
    };
    assert!(is_allowed("a.example").await);
    let listed = async || fleet.registered_policies().await.unwrap().find("hosts").is_some();
    until_found("the policy is listed", listed).await;
    for who in ["a.example", "host:a.example", "--subject host:a.example"] {
        let paused = console.run(&format!("pause hosts {who} --for 30m --yes")).expect(0);
        assert_eq!(paused.out, "host:a.example is paused under hosts for 30m\n");
        let is_paused = async || !is_allowed("a.example").await && is_allowed("b.example").await;
        until_found("this host alone is paused", is_paused).await;
        let top = console.run("top hosts --on host").expect(0).out;
        assert!(
            has_line(&top, &["host:a.example", "paused for"]) && !has_line(&top, &["host:b.example", "for"]),
            "{top}"
        );
        assert!(!console.run("top hosts").expect(0).out.contains(" for "), "the main subject is not paused");
        let resumed = console.run(&format!("resume hosts {who} --yes --json")).expect(0).json();
        assert_eq!(resumed, serde_json::json!({ "policy": "hosts", "resumed": "host:a.example" }));
        until_found("the host is called again", async || is_allowed("a.example").await).await;
    }
    // A missing host does not stand for all hosts.
    let everyone = Subject::everyone();
    fleet.check(&policy, &acme).subject("host", &everyone).pause(HOUR).await.unwrap();
    assert!(console.run("peek hosts acme").expect(1).out.starts_with("undecided"));
    assert!(console.run("resume hosts --yes").expect(2).errors.contains("a value is missing for `host`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused() {
    let seeded = Seeded::start().await;
    begin(&seeded).await;
    let console = seeded.console();
    let fixed = "subjects of policy `login` cannot be paused; add `pause = …` to its attribute, or `.pausable()` where it is built";
    for (words, part) in [
        (
            "pause partner acme --for 0s --yes",
            "`--for` must be longer than zero; to end a pause, use `tallygate resume`",
        ),
        ("pause partner acme --for 2h --yes", "`--for` must be 1h at most, which is the longest pause of the policy"),
        ("pause partner acme --yes", "--for <DURATION>"),
        ("pause partner acme --for 1m", "write `--yes`"),
        ("resume partner acme", "write `--yes`"),
        ("pause login alice --for 1m --yes", fixed),
        ("resume login alice --yes", fixed),
        ("pause partnr acme --for 1m --yes", "did you mean `partner`?"),
        ("resume partner --yes", "a value is missing for `account`"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{words}: {printed:?}");
    }
    console.run("peek partner acme").expect(0);
}
