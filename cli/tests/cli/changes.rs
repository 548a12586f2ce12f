//! What changes something: reset, ban, unban.

use tallygate::{Policy, Rule, Subject};

use crate::seeded::{CALLER, HOUR, Seeded, limiter, listed, login, sms};

#[tokio::test(flavor = "multi_thread")]
async fn who_is_reset_starts_again() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let printed = console.run(&format!("reset sms.send {CALLER} --yes")).expect(0);
    assert_eq!(printed.out, format!("sms:{CALLER} starts again under sms.send\n"));
    let fleet = limiter(console.url, "tallygate").await;
    assert!(fleet.check(&sms(), &Subject::of("sms").and(CALLER)).await.unwrap().is_allowed());
    let json = console.run(&format!("reset sms.send --subject sms:{CALLER} --yes --json")).expect(0).json();
    assert_eq!(json["reset"][0], format!("sms:{CALLER}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_holds_for_the_fleet_until_it_ends() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let (policy, alice) = (login(), Subject::of("alice"));
    assert_eq!(console.run("ban login alice --yes").expect(0).out, "alice is banned under login for 1h\n");
    assert!(!fleet.check(&policy, &alice).await.unwrap().is_allowed());
    let printed = console.run("peek login alice").expect(1);
    assert!(printed.out.starts_with("banned for "), "{printed:?}");
    let json = console.run("ban login alice --for 2d --yes --json").expect(0).json();
    assert_eq!(json["duration_ms"], 172_800_000);
    let printed = console.run("unban login alice --yes").expect(0);
    assert!(printed.out.ends_with("to let it start again: tallygate reset login alice\n"), "{printed:?}");
    assert!(fleet.check(&policy, &alice).await.unwrap().is_allowed());
    console.run("unban login alice --yes").expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_counted_by_an_override_starts_again_too() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    // Another longest window: the override has tallies of its own.
    console.run_words(&["override", "sms.send", "2 per 2h", "--yes"]).expect(0);
    let (fleet, policy, caller) = (limiter(console.url, "tallygate").await, sms(), Subject::of("sms").and(CALLER));
    for _ in 0..2 {
        assert!(fleet.check(&policy, &caller).await.unwrap().is_allowed());
    }
    console.run(&format!("peek sms.send {CALLER}")).expect(1);
    console.run(&format!("reset sms.send {CALLER} --yes")).expect(0);
    let printed = console.run(&format!("peek sms.send {CALLER}")).expect(0);
    assert!(printed.out.contains("2 left"), "{printed:?}");
    // What was counted by the rules of the policy is forgotten as well.
    console.run("override sms.send --clear --yes").expect(0);
    console.run(&format!("peek sms.send {CALLER}")).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_reaches_a_subject_that_an_override_counts() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    console.run_words(&["override", "login", "5 per 2h", "--yes"]).expect(0);
    console.run("ban login alice --yes").expect(0);
    assert!(console.run("peek login alice").expect(1).out.starts_with("banned for "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_of_a_subject_that_an_override_counts_ends() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    console.run_words(&["override", "login", "5 per 2h", "--yes"]).expect(0);
    let (fleet, policy, alice) = (limiter(console.url, "tallygate").await, login(), Subject::of("alice"));
    // From its first decision on, this process knows the override.
    assert!(fleet.check(&policy, &alice).await.unwrap().is_allowed());
    fleet.check(&policy, &alice).ban(HOUR).await.unwrap();
    console.run("peek login alice").expect(1);
    console.run("unban login alice --yes").expect(0);
    console.run("peek login alice").expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shares_a_limit_with_everyone_is_called_so() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let policy = Policy::builder("all").key("").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    assert!(fleet.check(&policy, &Subject::everyone()).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    assert!(console.run("top all").expect(0).out.starts_with("everyone   100 %"));
    let printed = console.run("reset all --yes").expect(0);
    assert_eq!(printed.out, "everyone starts again under all\n");
    console.run("peek all").expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_counts_no_main_subject_is_reset_as_a_whole() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rules = Policy::builder("networks").rule_on("network", Rule::sliding_window(1, HOUR));
    let policy = rules.key_on("network", "{ip}").build().unwrap();
    let (everyone, network) = (Subject::everyone(), Subject::of("n"));
    assert!(fleet.check(&policy, &everyone).subject("network", &network).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    // Before anybody is asked.
    for (words, part) in [
        ("reset networks n", "write `--all`"),
        ("reset networks --subject n", "write `--all`"),
        ("reset networks --all --subject n", "no rule counts a main subject"),
        ("reset networks --on network=n", "write `--all`"),
        ("ban login alice --on network=n", "--on"),
        ("unban login alice --on network=n", "--on"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{printed:?}");
    }
    console.run("peek networks n").expect(1);
    let printed = console.run("reset networks --all --on network=n --yes").expect(0);
    assert_eq!(printed.out, "n starts again under networks\n");
    console.run("peek networks n").expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_is_understood_as_top_prints_it_and_refused_if_no_key_has_it() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let whole = format!("sms:{CALLER}");
    let both = [CALLER, &whole].map(|text| console.run(&format!("peek sms.send {text} --json")).expect(1).json());
    assert_eq!(
        (&both[0]["subject"], &both[0]["rules"][0]["used"]),
        (&both[1]["subject"], &both[1]["rules"][0]["used"])
    );
    assert_eq!(both[0]["rules"][0]["used"], 1);
    for command in ["peek", "reset --yes"] {
        let printed = console.run(&format!("{command} sms.send --subject {CALLER}")).expect(2);
        assert!(printed.errors.contains("its key is `sms:{phone}`; write it like `sms:PHONE`"), "{printed:?}");
    }
    let printed = console.run("ban login alice:zoe --for 1h --yes").expect(0);
    assert!(printed.out.starts_with("alice%3Azoe is banned"), "{printed:?}");
    let printed = console.run_words(&["ban", "login", "--subject", "alice:zoe", "--yes"]).expect(2);
    assert!(printed.errors.contains("policy `login` has no subject `alice:zoe`"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_mean_nothing_are_refused() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let printed = console.run("top sms.send --limit 0").expect(2);
    assert!(printed.errors.contains("nothing would be shown; write 1 or more"), "{printed:?}");
    let printed = console.run("ban login alice --for 5000d --yes").expect(2);
    assert!(printed.errors.contains("`--for` must be 3660d at most"), "{printed:?}");
    let (policy, alice) = (login(), Subject::of("alice"));
    let fleet = limiter(console.url, "tallygate").await;
    let error = fleet.check(&policy, &alice).ban(5_000 * 24 * HOUR).await.unwrap_err();
    assert!(error.to_string().contains("a ban lasts 3660d at most"), "{error}");
    assert!(fleet.check(&policy, &alice).peek().await.unwrap().is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_subject_is_banned_under_a_policy_without_a_ban() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for words in ["ban sms.send 138 --yes", "unban sms.send 138 --yes"] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains("policy `sms.send` has no ban"), "{printed:?}");
    }
    let printed = console.run("ban login alice --for 0s --yes").expect(2);
    let mistake = "`--for` must be longer than zero; to end a ban, use `tallygate unban`";
    assert!(printed.errors.contains(mistake), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_and_without_yes_nothing_is_changed() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let reset = format!("reset sms.send {CALLER}");
    for words in [reset.as_str(), "ban login alice", "unban login alice"] {
        let printed = console.run_with(words, "y\n").expect(2);
        assert!(printed.errors.contains("write `--yes`"), "{printed:?}");
    }
    let words = ["override", "sms.send", "100 per 1h"];
    assert!(console.run_words(&words).expect(2).errors.contains("write `--yes`"));
    console.run(&format!("peek sms.send {CALLER}")).expect(1);
    console.run("peek login alice").expect(0);
    assert_eq!(console.run("override --list").expect(0).out, "no override is in force\n");
}
