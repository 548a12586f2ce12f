//! `override`: other rules, while everything runs.

use tallygate::{Policy, Rule, Subject};

use crate::console::steady;
use crate::seeded::{CALLER, HOUR, Seeded, limiter, listed, sms};

#[tokio::test(flavor = "multi_thread")]
async fn an_override_decides_in_every_process_until_it_is_cleared() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let caller = Subject::of("sms").and(CALLER);
    let printed =
        console.run_words(&["override", "sms.send", "2 per 1m", "--rule", "0", "--for", "2h", "--yes"]).expect(0);
    assert_eq!(steady(&printed.out), steady("sms.send is overridden: 0 = 2 per 1m for 2h"));
    let fleet = limiter(console.url, "tallygate").await;
    assert!(fleet.check(&sms(), &caller).await.unwrap().is_allowed());

    let json = console.run("override --list sms.send --json").expect(0).json();
    assert_eq!(json["overrides"][0]["rules"][0]["replaces"], 0);
    assert!(json["overrides"][0]["expires_in_ms"].as_u64().unwrap() > 7_000_000, "{json}");
    assert_eq!(console.run("override --list login").expect(0).out, "no override of login is in force\n");

    console.run("override sms.send --clear --yes").expect(0);
    assert_eq!(console.run("override sms.send --clear --yes").expect(0).out, "nothing overrides sms.send\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_of_one_unit_leaves_the_limits_of_the_others() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let calls = Policy::builder("chat").key("{user}").rule(Rule::sliding_window(60, HOUR));
    let policy = calls.rule(Rule::sliding_window(20_000, HOUR).counting("tokens")).build().unwrap();
    let alice = Subject::of("alice");
    assert!(fleet.check(&policy, &alice).cost_of("tokens", 500).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    console.run_words(&["override", "chat", "50_000 tokens per 1h", "--subject", "alice", "--yes"]).expect(0);
    let json = console.run("peek chat alice --json").expect(0).json();
    let [calls, tokens] =
        [0, 1].map(|rule| (json["rules"][rule]["limit"].clone(), json["rules"][rule]["used"].clone()));
    assert_eq!((calls, tokens), ((60.into(), 1.into()), (50_000.into(), 500.into())), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_has_an_override_of_its_own() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let whole = format!("sms:{CALLER}");
    let words = ["override", "sms.send", "50 per 1d", "--rule", "daily", "--subject", &whole, "--yes"];
    let printed = console.run_words(&words).expect(0);
    assert_eq!(printed.out, format!("sms.send for {whole} is overridden: daily = 50 per 1d\n"));
    let json = console.run("override --list --json").expect(0).json();
    assert_eq!(
        (&json["overrides"][0]["subject"], &json["overrides"][0]["policy"]),
        (&whole.into(), &"sms.send".into())
    );
    assert_eq!(console.run("override sms.send --clear --yes").expect(0).out, "nothing overrides sms.send\n");
    console.run(&format!("override sms.send --clear --subject sms:{CALLER} --yes")).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_is_replaced_is_named() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let set = |words: &[&str]| console.run_words(&[&["override", "sms.send"], words, &["--yes"]].concat()).expect(0);
    set(&["0 per 1h"]);
    let printed = set(&["2 per 1m", "--rule", "0"]);
    assert_eq!(printed.out, "sms.send is overridden: 0 = 2 per 1m, in place of the override `0 per 1h`\n");
    let json = set(&["3 per 1m", "--json"]).json();
    assert_eq!(
        (&json["replaced"]["rules"][0]["rule"], &json["replaced"]["rules"][0]["replaces"]),
        (&"2 per 1m".into(), &0.into())
    );
    let json = set(&["3 per 1m", "--subject", "sms:139", "--json"]).json();
    assert!(json["replaced"].is_null(), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_cleared() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    console.run_words(&["override", "sms.send", "2 per 1m", "--yes"]).expect(0);
    // As a later version may write it.
    seeded.server.ask::<()>("HSET tallygate:!overrides sms.send later");
    assert_eq!(console.run("override --list").expect(0).out, "no override is in force\n");
    let json = console.run("override sms.send --clear --yes --json").expect(0).json();
    assert_eq!((&json["cleared"]["policy"], json["cleared"]["rules"].is_null()), (&"sms.send".into(), true), "{json}");
    assert!(!seeded.server.ask::<bool>("HEXISTS tallygate:!overrides sms.send"));
    assert_eq!(console.run("override sms.send --clear --yes").expect(0).out, "nothing overrides sms.send\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_is_cleared_as_it_is_listed_whatever_has_become_of_its_policy_label_or_key() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let old = Subject::of("mail").and("zoe");
    let of = |policy: &str| fleet.override_policy(policy).text("9 per 1h").allow_unknown();
    for (stored, words) in [
        (of("gone"), "gone"),
        (of("gone").subject(&old), "gone --subject mail:zoe"),
        (of("gone").label("host").subject(&old), "gone --on host --subject mail:zoe"),
        (of("sms.send").label("host"), "sms.send --on host"),
        (of("sms.send").label("host").subject(&old), "sms.send --on host --subject mail:zoe"),
        (of("sms.send").subject(&old), "sms.send --subject mail:zoe"),
    ] {
        stored.set().await.unwrap();
        let listed = console.run("override --list --json").expect(0).json()["overrides"][0].take();
        let clear = format!("override {words} --clear --yes --json");
        assert_eq!(console.run(&clear).expect(0).json()["cleared"], listed, "{words}");
        assert_eq!(console.run("override --list").expect(0).out, "no override is in force\n");
        console.run(&clear).expect(2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_overrides_some_can_be_cleared() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    console.run_words(&["override", "sms.send", "2 per 1m", "--yes"]).expect(0);
    let fill = "for number = 1, 10000 do redis.call('HSET', KEYS[1], 'sms.send:' .. number, '1 per 1h') end";
    let mut command = redis::cmd("EVAL");
    command.arg(fill).arg(1).arg("tallygate:!overrides").exec(&mut seeded.server.connection()).unwrap();
    assert!(console.run("override --list").expect(4).errors.contains("more than 10000 overrides; clear some"));
    console.run("override sms.send --clear --yes").expect(0);
    assert!(!seeded.server.ask::<bool>("HEXISTS tallygate:!overrides sms.send"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_name_is_not_taken_for_one_without_an_override() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for (words, part) in [
        ("override sms.snd --clear --yes", "did you mean `sms.send`?"),
        ("override --list sms.snd", "did you mean `sms.send`?"),
        ("override sms.send --clear --on network --yes", "has no rule on a subject `network`"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part) && printed.out.is_empty(), "{printed:?}");
    }
    // A name that only an override has is known.
    console.run_words(&["override", "new", "1 per 1h", "--on", "network", "--allow-unknown", "--yes"]).expect(0);
    console.run("override --list new").expect(0);
    console.run("override new --clear --on network --yes").expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_shown_before_the_question() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    // Stdin is no terminal: whoever would be asked gets another error.
    for (words, part) in [
        (&["sms.send", "100 per"][..], "100 per"),
        (&["sms.send", "0 per 0s"], "`per`"),
        (&["sms.send", "1 per 1h", "--rule", "dayly"], "did you mean `daily`?"),
        (&["sms.send", "1 per 1h", "--on", "network"], "network"),
        (&["sms.send", "1 per 1h", "--for", "5000d"], "3660 days at most"),
        (&["sms.send", "1 per 1h", "--for", "0s"], "must hold for longer than zero, like `for 2h`"),
        (
            &["sms.send", "1 per 1h for 1h", "--for", "2h"],
            "the rules and `--for` both give how long they hold; leave one of them out",
        ),
        (
            &["sms.send", "1 per 1h", "--subject", "not a subject"],
            "its key is `sms:{phone}`; write it like `sms:PHONE`",
        ),
        (&["sms.send", "1 per 1h", "--subject", "138"], "write it like `sms:PHONE`"),
        (&["sms.send", "--clear", "--subject", "138"], "write it like `sms:PHONE`"),
    ] {
        let printed = console.run_words(&[&["override"], words].concat()).expect(2);
        assert!(printed.errors.contains(part) && !printed.errors.contains("nobody can be asked"), "{printed:?}");
    }
    let printed = console.run_words(&["override", "sms.send", "100 per 1h"]).expect(2);
    assert!(printed.errors.contains("nobody can be asked"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_names_and_mistaken_rules_change_nothing() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for (words, part) in [
        (&["sms.snd", "1 per 1h"][..], "did you mean `sms.send`?"),
        (&["sms.send", "1 per hour"], "did you mean"),
        (&["sms.send", "1 per 1h", "--rule", "dayly"], "did you mean `daily`?"),
        (&["sms.send", "1 per 1h", "--rule", "7"], "position 7"),
        (&["sms.send", "1 per 1h", "--on", "network"], "network"),
        (&["sms.send", "1 per 1h", "--for", "2hours"], "did you mean `2h`?"),
        (&["sms.send", "1 per 1h", "--subject", "a b%"], ""),
    ] {
        let words = [&["override"], words, &["--yes"]].concat();
        let printed = console.run_words(&words).expect(2);
        assert!(printed.errors.contains(part), "{printed:?}");
    }
    assert_eq!(console.run("override --list").expect(0).out, "no override is in force\n");
    console.run_words(&["override", "sms.snd", "1 per 1h", "--allow-unknown", "--yes"]).expect(0);
    console.run_words(&["override"]).expect(2);
    console.run_words(&["override", "sms.send"]).expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_put_in_shadow_and_enforced_again() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let caller = Subject::of("sms").and(CALLER);
    assert!(!fleet.check(&sms(), &caller).await.unwrap().is_allowed());
    let printed = console.run("override sms.send --shadow --for 2h --operator zoe --yes").expect(0);
    assert_eq!(steady(&printed.out), steady("sms.send is overridden: shadow for 2h"));
    let fleet = limiter(console.url, "tallygate").await;
    assert!(fleet.check(&sms(), &caller).await.unwrap().is_allowed());

    let peeked = console.run(&format!("peek sms.send {CALLER}")).expect(1).out;
    let verdict = peeked.lines().next().unwrap();
    assert!(
        verdict.starts_with("would be denied for ") && verdict.ends_with(" (shadow: nobody is rejected)"),
        "{peeked}"
    );
    assert_eq!(console.run(&format!("peek sms.send {CALLER} --json")).expect(1).json()["shadow"], true);
    let top = console.run("top sms.send --by wait").expect(0).out;
    assert!(top.contains("   would be denied for ") && !top.contains("   denied"), "{top}");
    let json = console.run("override --list --json").expect(0).json();
    assert_eq!(
        (&json["overrides"][0]["shadow"], &json["overrides"][0]["rules"]),
        (&true.into(), &serde_json::json!([]))
    );

    let replaced = console.run("override sms.send --enforced --yes").expect(0).out;
    assert!(
        replaced.starts_with("sms.send is overridden: enforced, in place of the override `shadow for "),
        "{replaced}"
    );
    console.run("override sms.send --clear --yes").expect(0);
    assert!(!limiter(console.url, "tallygate").await.check(&sms(), &caller).await.unwrap().is_allowed());
    console.run("override sms.send --shadow --enforced --yes").expect(2);
    console.run(&format!("override sms.send --shadow --subject sms:{CALLER} --yes")).expect(2);
}
