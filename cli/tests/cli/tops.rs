//! `top` of all policies, and of one rule.

use tallygate::{Policy, Rule, Subject};
use tallygate_harness::server::{connected, patient};

use crate::seeded::{CALLER, HOUR, MINUTE, Seeded, limiter, listed, sms};

/// A policy with a rule on another subject, of which `bob` has used half, and his network all.
async fn search(seeded: &Seeded) {
    let fleet = limiter(seeded.console().url, "tallygate").await;
    let rules = Policy::builder("search").key("{user}").rule(Rule::sliding_window(2, HOUR));
    let network = Rule::sliding_window(1, MINUTE).named("crowd");
    let policy = rules.rule_on("network", network).key_on("network", "{ip}").build().unwrap();
    let (bob, network) = (Subject::of("bob"), Subject::of("192.0.2.1"));
    assert!(fleet.check(&policy, &bob).subject("network", &network).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subjects_of_all_policies_are_compared() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    search(&seeded).await;
    let printed = console.run("top").expect(0);
    let lines: Vec<_> = printed.out.lines().collect();
    assert!(
        lines[0].starts_with("search     on network   192.0.2.1         100 %   1 of 1 per 1m as crowd"),
        "{printed:?}"
    );
    assert!(
        lines[1].starts_with(&format!("sms.send                sms:{CALLER}   100 %   1 of 1 per 1m")),
        "{printed:?}"
    );
    assert!(lines[2].starts_with("search                  bob               50 %    1 of 2 per 1h"), "{printed:?}");
    assert!(lines[3].starts_with("login                   alice             10 %"), "{printed:?}");
    assert_eq!(lines[4], "4 of 4 subjects");
    let json = console.run("top --by wait --limit 1 --json").expect(0).json();
    assert_eq!((&json["policy"], &json["label"], &json["subjects"]), (&().into(), &().into(), &4.into()));
    assert_eq!((json["top"].as_array().map(Vec::len), &json["left_out"]), (Some(1), &serde_json::json!([])));
    assert!(["search", "sms.send"].contains(&json["top"][0]["policy"].as_str().unwrap()), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_rule_is_looked_at_alone() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    search(&seeded).await;
    let line = format!("sms:{CALLER}   10 %   1 of 10 per 1d as daily\n1 of 1 subject\n");
    for rule in ["daily", "2"] {
        assert_eq!(console.run(&format!("top sms.send --rule {rule}")).expect(0).out, line);
        let nobody = console.run(&format!("top sms.send --rule {rule} --by wait")).expect(0);
        assert_eq!(nobody.out, format!("nobody is denied by rule {rule} of sms.send; 1 subject looked at\n"));
    }
    let denied = console.run("top sms.send --rule 0 --by wait").expect(0);
    assert!(denied.out.starts_with(&format!("sms:{CALLER}   100 %   1 of 1 per 1m   denied for ")), "{denied:?}");
    // A rule with a key of its own says whose subjects these are.
    let printed = console.run("top search --rule crowd").expect(0);
    assert!(printed.out.starts_with("192.0.2.1   100 %   1 of 1 per 1m as crowd   denied for "), "{printed:?}");
    let json = console.run("top search --rule crowd --json").expect(0).json();
    assert_eq!((&json["label"], &json["rule"]), (&"network".into(), &"crowd".into()));
    // One of an override, too.
    console.run_words(&["override", "login", "5 per 1m, 9 per 2h as slow", "--yes"]).expect(0);
    let fleet = limiter(console.url, "tallygate").await;
    let login = crate::seeded::login();
    assert!(fleet.check(&login, &Subject::of("alice")).await.unwrap().is_allowed());
    let printed = console.run("top login --rule slow").expect(0);
    assert!(printed.out.starts_with("alice   11 %   1 of 9 per 2h as slow\n"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_denied_most_often_is_compared_over_all_policies() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let keeps = connected(&patient().denied_subjects(100), console.url).await;
    let other = Policy::builder("login").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    for (policy, subject, calls) in [(&sms(), Subject::of("sms").and(1), 3), (&other, Subject::of("eve"), 6)] {
        for _ in 0..calls {
            let _ = keeps.check(policy, &subject).await.unwrap();
        }
    }
    keeps.publish_denied_subjects().await.unwrap();
    let printed = console.run("top --by denied").expect(0);
    let rows = "login      eve     at least 5 calls denied\nsms.send   sms:1   at least 2 calls denied\n";
    assert_eq!(printed.out, format!("{rows}2 of 2 subjects within this hour and the one before\n"));
    let json = console.run("top --by denied --json").expect(0).json();
    assert_eq!((&json["top"][1]["policy"], &json["top"][1]["denials"]), (&"sms.send".into(), &2.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    search(&seeded).await;
    for (words, part) in [
        (
            "top sms.send --rule dayly",
            "has no rule `dayly`; its rules have the positions 0 to 2; did you mean `daily`?",
        ),
        ("top sms.send --rule 3", "has no rule `3`; its rules have the positions 0 to 2; the only name is `daily`"),
        ("top login --rule 1", "has no rule `1`; its rules have the positions 0"),
        ("top --rule daily", "<POLICY>"),
        ("top --on network", "<POLICY>"),
        ("top search --on network --rule crowd", "cannot be used with"),
        ("top sms.send --by denied --rule 0", "leave `--rule` out"),
        ("top --prefix other", "no policy is listed under the prefix `other`"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{words}: {printed:?}");
    }
}
