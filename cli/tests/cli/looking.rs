//! What only looks: policies, and where somebody stands.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::{connected, patient};

use crate::console::{Console, steady};
use crate::seeded::{CALLER, HOUR, MINUTE, Seeded, limiter, listed, login, sms};

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_listed_with_keys_rules_and_overrides() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    // While it is there, this process knows its name.
    let policy = login();
    fleet.override_policy(policy.name()).rules([Rule::sliding_window(5, MINUTE)]).set().await.unwrap();
    let printed = console.run("policies").expect(0);
    assert_eq!(
        steady(&printed.out),
        steady(
            "login {user} 10 per 1m · ban of 1h for 20 denials in 10m override: 5 per 1m\n\
             sms.send sms:{phone} 1 per 1m · 5 per 1h · 10 per 1d as daily override: none"
        )
    );
    let json = console.run("policies --json").expect(0).json();
    assert_eq!(json["policies"][0]["ban"]["duration_ms"], 3_600_000);
    assert_eq!(json["policies"][0]["overrides"][0]["rules"][0]["rule"], "5 per 1m");
    assert_eq!(json["policies"][1]["key"], "sms:{phone}");
    assert_eq!(json["policies"][1]["rules"][2]["name"], "daily");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peek_tells_what_the_next_call_gets() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let denied = console.run(&format!("peek sms.send {CALLER}")).expect(1);
    let lines: Vec<_> = denied.out.lines().collect();
    assert!(lines[0].starts_with("denied for ") && lines[0].ends_with(" by rule 0"), "{denied:?}");
    assert!(lines[1].starts_with("0   1 per 1m             0 left   resets in "), "{denied:?}");
    assert!(lines[3].starts_with("2   10 per 1d as daily   9 left   resets in "), "{denied:?}");
    let admitted = console.run("peek sms.send --subject sms:139 --cost 2").expect(1);
    assert!(admitted.out.starts_with("denied for good by rule 0\n"), "{admitted:?}");
    let admitted = console.run("peek sms.send 139").expect(0);
    assert!(admitted.out.starts_with("admitted\n0   1 per 1m             1 left    unused\n"), "{admitted:?}");

    let json = console.run(&format!("peek sms.send {CALLER} --json")).expect(1).json();
    assert_eq!((&json["admitted"], &json["subject"]), (&false.into(), &format!("sms:{CALLER}").into()));
    assert_eq!((&json["denied"]["kind"], &json["denied"]["rule"]), (&"limited".into(), &0.into()));
    assert!((1..=60_000).contains(&json["denied"]["retry_after_ms"].as_u64().unwrap()), "{json}");
    assert_eq!(json["rules"][1]["remaining"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_unit_is_shown_and_a_peek_takes_a_cost_in_each() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let tokens = Rule::sliding_window(20_000, HOUR).counting("tokens");
    let rules = Policy::builder("chat").key("{user}").rule(Rule::sliding_window(60, HOUR)).rule(tokens);
    let policy = rules.build().unwrap();
    let alice = Subject::of("alice");
    assert!(fleet.check(&policy, &alice).cost_of("tokens", 15_500).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("policies").expect(0);
    assert!(printed.out.contains("60 per 1h · 20000 tokens per 1h"), "{printed:?}");
    let json = console.run("policies --json").expect(0).json();
    let rules = &json["policies"][0]["rules"];
    assert_eq!((rules[0].get("unit"), &rules[1]["unit"]), (None, &"tokens".into()));

    let printed = console.run("peek chat alice --cost tokens=4500").expect(0);
    let lines: Vec<_> = printed.out.lines().collect();
    assert!(
        lines[1].starts_with("0   60 per 1h             59 left ") && lines[2].contains("4,500 tokens left"),
        "{printed:?}"
    );
    let printed = console.run("peek chat alice --cost 3 --cost tokens=4501").expect(1);
    let verdict = printed.out.lines().next().unwrap();
    assert!(verdict.starts_with("denied for ") && verdict.ends_with(" by rule 1, which counts tokens"), "{printed:?}");
    let json = console.run("peek chat alice --cost tokens=4501 --json").expect(1).json();
    assert_eq!((&json["denied"]["unit"], &json["rules"][1]["unit"]), (&"tokens".into(), &"tokens".into()));
    for (words, mistake) in [
        ("--cost tokns=1", "no rule of chat counts the unit `tokns`; did you mean `tokens`?"),
        ("--cost tokens=1 --cost tokens=2", "the cost in `tokens` is given twice; give it once"),
        ("--cost tokens=many", "write a number, like 3, or a unit with one, like tokens=500"),
        ("--cost many", "write a number, like 3, or a unit with one, like tokens=500"),
    ] {
        let printed = console.run(&format!("peek chat alice {words}")).expect(2);
        assert!(printed.errors.contains(mistake), "{printed:?}");
    }
    let printed = console.run("top chat").expect(0);
    assert!(printed.out.contains("1 of 60 per 1h · 15,500 of 20,000 tokens per 1h"), "{printed:?}");
    let json = console.run("top chat --json").expect(0).json();
    assert_eq!(json["top"][0]["rules"][1]["unit"], "tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_processes_took_ahead_counts_as_used_and_the_command_line_says_so() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rule = Rule::sliding_window(1_000, MINUTE);
    let policy = Policy::builder("tenant").key("{tenant}").rule(rule).prefetch(Duration::from_secs(1)).build().unwrap();
    assert!(fleet.check(&policy, &Subject::of("acme")).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("policies").expect(0);
    let line = steady("tenant {tenant} 1000 per 1m · takes 1s ahead override: none");
    assert!(steady(&printed.out).contains(&line), "{printed:?}");
    assert_eq!(console.run("policies --json").expect(0).json()["policies"][2]["prefetch_ms"], 1_000);
    let printed = console.run("peek tenant acme").expect(0);
    let lines: Vec<_> = printed.out.lines().collect();
    assert_eq!(lines[..2], ["admitted", "what processes took ahead, for at most 1s, counts as used"]);
    assert!(lines[2].starts_with("0   1000 per 1m   999 left   resets in "), "{printed:?}");
    assert_eq!(console.run("peek tenant acme --json").expect(0).json()["prefetch_ms"], 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peek_goes_by_what_is_overridden() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let caller = Subject::of("sms").and(CALLER);
    // While it is there, this process knows its name.
    let policy = sms();
    let set = fleet.override_policy("sms.send").subject(&caller).rule(0, Rule::sliding_window(7, MINUTE));
    set.set().await.unwrap();
    drop(policy);
    let printed = console.run(&format!("peek sms.send {CALLER}")).expect(0);
    assert!(printed.out.contains("0   7 per 1m             6 left"), "{printed:?}");
    assert!(printed.out.contains("override for this subject: 0 = 7 per 1m"), "{printed:?}");
    assert!(!console.run("peek sms.send 139").out.contains("override"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_digests_needs_the_secret() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let mail = Policy::builder("mail").key("mail:{email:hash}").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    let subject = fleet.subject().text("mail:").value("a@example.org").hash().build();
    assert!(fleet.check(&mail, &subject).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("peek mail a@example.org").expect(2);
    assert!(printed.errors.contains("`--secret-file`") && printed.errors.contains("`--no-secret`"), "{printed:?}");
    let printed = console.run("peek mail a@example.org --secret-file secret").expect(1);
    assert!(!printed.out.contains("a@example.org") && printed.out.starts_with("denied"), "{printed:?}");
    // Without a secret, it is another subject.
    let printed = console.run("peek mail a@example.org --no-secret").expect(2);
    assert!(printed.errors.contains("the programs have a secret for the digests of `mail`"), "{printed:?}");
    // However the file ends, and with another secret, it says so.
    for (text, exit) in [("a secret of the programs", 1), ("\u{feff}a secret of the programs \r\n", 1), ("another", 2)]
    {
        fs::write(console.folder.join("own"), text).unwrap();
        let printed = console.run("peek mail a@example.org --secret-file own").expect(exit);
        let is_refused =
            printed.errors.contains("`--secret-file` is not the secret of the programs; name the file with");
        assert_eq!(is_refused, exit == 2, "{printed:?}");
    }
    fs::write(console.folder.join("own"), "\n").unwrap();
    let printed = console.run("peek mail a@example.org --secret-file own").expect(2);
    assert!(printed.errors.contains("`--secret-file` must not be empty"), "{printed:?}");
    // The whole subject needs none.
    console.run(&format!("peek mail --subject {subject}")).expect(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_denied_most_often_is_shown_if_the_programs_keep_that() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let printed = console.run("top sms.send --by denied").expect(0);
    assert!(printed.out.starts_with("no denied subject of sms.send is known"), "{printed:?}");
    let keeps = connected(&patient().denied_subjects(100), console.url).await;
    for (caller, calls) in [("138", 5), ("139", 3)] {
        for _ in 0..calls {
            let _ = keeps.check(&sms(), &Subject::of("sms").and(caller)).await.unwrap();
        }
    }
    keeps.publish_denied_subjects().await.unwrap();
    let printed = console.run("top sms.send --by denied").expect(0);
    let rows = "sms:138   at least 4 calls denied\nsms:139   at least 2 calls denied\n";
    assert_eq!(printed.out, format!("{rows}2 of 2 subjects within this hour and the one before\n"));
    let json = console.run("top sms.send --by denied --limit 1 --json").expect(0).json();
    assert_eq!((&json["top"][0]["subject"], &json["top"][0]["denials"]), (&"sms:138".into(), &4.into()));
    assert_eq!((json["top"].as_array().map(Vec::len), &json["subjects"]), (Some(1), &2.into()));
    let printed = console.run("top sms.send --by denied --limit 1").expect(0);
    assert_eq!(printed.out, "sms:138   at least 4 calls denied\n1 of 2 subjects within this hour and the one before\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_with_keys_of_their_own_need_their_values_too() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rules = Policy::builder("search").key("{user}").rule(Rule::sliding_window(9, HOUR));
    let policy =
        rules.rule_on("network", Rule::sliding_window(1, HOUR)).key_on("network", "{ip:subnet}").build().unwrap();
    let (alice, network) = (Subject::of("alice"), Subject::of("192.0.2.1"));
    assert!(fleet.check(&policy, &alice).subject("network", &network).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("peek search alice 192.0.2.1").expect(1);
    assert!(printed.out.contains("by rule 1\n0   9 per 1h   8 left"), "{printed:?}");
    console.run("peek search alice --on network=192.0.2.2").expect(0);
    let printed = console.run("peek search alice").expect(1);
    let not_given = "undecided\nnot given: network, which is {ip:subnet}; add its value, or --on network=…\n";
    assert!(printed.out.starts_with(not_given) && printed.out.contains("0   9 per 1h   8 left"), "{printed:?}");
    assert!(!printed.out.contains("1 per 1h"), "{printed:?}");
    let json = console.run("peek search --on network=192.0.2.1 --json").expect(1).json();
    assert_eq!((&json["admitted"], &json["subject"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!(json["missing"], serde_json::json!([{ "label": null, "key": "{user}" }]));
    assert_eq!(json["rules"].as_array().map(Vec::len), Some(1));
    let printed = console.run("peek search").expect(2);
    assert!(printed.errors.contains("`user`, `ip`"), "{printed:?}");
    let printed = console.run("top search --on network").expect(0);
    assert!(printed.out.starts_with("192.0.2.1   100 %   1 of 1 per 1h   denied for "), "{printed:?}");
    let printed = console.run("top search").expect(0);
    assert_eq!(printed.out, "alice   11 %   1 of 9 per 1h\n1 of 1 subject\n");
    let printed = console.run("top search --on netwrok").expect(2);
    assert!(printed.errors.contains("did you mean `network`?"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_counted_by_an_override_is_among_the_first() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rules = [Rule::sliding_window(9, HOUR), Rule::sliding_window(7, MINUTE)];
    let rules = Policy::builder("search").key("{user}").rules(rules).rule_on("network", Rule::sliding_window(4, HOUR));
    let policy = rules.key_on("network", "{network}").build().unwrap();
    let network = Subject::of("n");
    let call = async |limiter: &Limiter, user: &str| {
        limiter.check(&policy, &Subject::of(user)).subject("network", &network).await.unwrap().is_allowed()
    };
    assert!(call(&fleet, "before").await);
    listed(&fleet, 3).await;
    // Of another longest window, and one rule less, so that the rule on the network has another position.
    console.run_words(&["override", "search", "5 per 2h", "--yes"]).expect(0);
    assert!(call(&limiter(console.url, "tallygate").await, "after").await);
    let printed = console.run("top search").expect(0);
    assert_eq!(printed.out, "after   20 %   1 of 5 per 2h\n1 of 2 subjects\n");
    let printed = console.run("top search --on network").expect(0);
    assert_eq!(printed.out, "n   50 %   2 of 4 per 1h\n1 of 1 subject\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_which_the_network_is_counted_is_refused() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let policy = Policy::builder("by.ip").key("{@ip}").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    // As the layer of a web server writes it.
    assert!(fleet.check(&policy, &Subject::of("2001:db8:1:2::/64")).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    for words in ["peek by.ip 2001:db8:1:2::7", "reset by.ip 2001:db8:1:2::7 --yes", "peek by.ip ::ffff:192.0.2.1"] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains("write the network as `tallygate top` prints it"), "{printed:?}");
    }
    console.run("peek by.ip 2001:db8:1:2::/64").expect(1);
    console.run("peek by.ip 192.0.2.1").expect(0);
    console.run("peek by.ip --subject 2001%3Adb8%3A1%3A2%3A%3A%2F64").expect(1);
    // Programs that count whole addresses write this one.
    console.run("peek by.ip --subject 2001%3Adb8%3A%3A7").expect(0);
    for no_subject in ["2002%3Ac000%3A201%3A%3A%2F64", "2002%3Ac000%3A201%3A%3A1", "2001%3ADB8%3A%3A7"] {
        let printed = console.run(&format!("peek by.ip --subject {no_subject}")).expect(2);
        assert!(printed.errors.contains("write the network as `tallygate top` prints it"), "{printed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_program_can_write_is_given_as_a_whole() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let policy = Policy::builder("by.form").key("{form:debug}").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    assert!(fleet.check(&policy, &Subject::of(format_args!("{:?}", "alice"))).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("peek by.form alice").expect(2);
    assert!(printed.errors.contains("`--subject`"), "{printed:?}");
    console.run("peek by.form --subject %22alice%22").expect(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_looks_changes_nothing_and_needs_no_permission_to_write() {
    let seeded = Seeded::start().await;
    let page = include_str!("../../../docs/cli.md");
    let (_, user) = page.split_once("redis-cli ACL SETUSER").unwrap();
    let user = user.split_once("```").unwrap().0.replace(['\\', '\''], "");
    seeded.server.ask::<()>(&format!("ACL SETUSER{user}"));
    let url = seeded.server.url().replace("://", "://watcher:password@");
    let console = Console { url: &url, ..seeded.console() };
    // What is not persisted since, counts every change.
    let changes = || {
        let info: String = seeded.server.ask("INFO persistence");
        info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:").map(str::to_owned)).unwrap()
    };
    let before = changes();
    console.run("policies").expect(0);
    console.run(&format!("peek sms.send {CALLER}")).expect(1);
    console.run("top sms.send").expect(0);
    console.run("top sms.send --by denied").expect(0);
    console.run("override --list").expect(0);
    let printed = console.run("doctor").expect(0);
    assert!(printed.out.contains("the user may only read"), "{printed:?}");
    for words in ["reset sms.send 138", "ban login alice", "unban login alice", "override sms.send --clear"] {
        console.run(words);
    }
    assert_eq!(changes(), before);
    // Each command that changes something is refused, also where there is something to change.
    let operator = seeded.console();
    operator.run("ban login zoe --yes").expect(0);
    operator.run_words(&["override", "sms.send", "1 per 2h", "--yes"]).expect(0);
    let before = changes();
    for words in [
        &["reset", "sms.send", CALLER][..],
        &["ban", "login", "alice"],
        &["unban", "login", "zoe"],
        &["override", "sms.send", "1 per 1h"],
        &["override", "sms.send", "--clear"],
    ] {
        let printed = console.run_words(&[words, &["--yes"]].concat()).expect(4);
        assert!(printed.errors.contains("give the user the permissions"), "{printed:?}");
        assert_eq!(changes(), before, "{words:?}");
    }
    assert!(console.run("peek login zoe").expect(1).out.starts_with("banned"));
    assert!(console.run("override --list").expect(0).out.contains("sms.send"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_the_programs_may_do_all_that_an_operator_does() {
    let seeded = Seeded::start().await;
    let page = include_str!("../../../runtime/guide/production.md");
    let users: Vec<_> = page.split("ACL SETUSER").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    // That of the programs, and what a tool needs beside it.
    for user in [users[0], users[3]] {
        seeded.server.ask::<()>(&format!("ACL SETUSER{}", user.replace(['\\', '\''], "")));
    }
    let url = seeded.server.url().replace("://", "://tallygate:password@");
    let console = Console { url: &url, ..seeded.console() };
    for words in [
        &["policies"][..],
        &["top", "sms.send"],
        &["ban", "login", "zoe", "--yes"],
        &["unban", "login", "zoe", "--yes"],
        &["override", "login", "1 per 1h", "--yes"],
        &["override", "--list"],
        &["override", "login", "--clear", "--yes"],
        &["reset", "sms.send", CALLER, "--yes"],
        &["peek", "sms.send", CALLER],
    ] {
        console.run_words(words).expect(0);
    }
}

/// The limits of `examples/form.rs`: what is the same form is shown by `Debug`.
#[rate_limit(
    name = "orders.submit",
    key = "{customer}",
    rule(count = 20, per = "1h"),
    prevent_duplicate(per = "1m", key = "{*:debug:hash}", release_if = Result::is_err),
    limiter = ORDERS.get().unwrap()
)]
async fn submit(customer: &str, pieces: u32) -> Result<(), Rejection> {
    Ok(())
}

static ORDERS: OnceLock<Limiter> = OnceLock::new();

#[tokio::test(flavor = "multi_thread")]
async fn a_function_whose_duplicates_are_shown_by_debug_is_looked_at_overridden_and_reset_by_its_values() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    ORDERS.set(fleet.clone()).unwrap();
    submit("zoe", 2).await.unwrap();
    submit("zoe", 2).await.unwrap_err();
    listed(&fleet, 3).await;
    let printed = console.run("peek orders.submit zoe").expect(1);
    let lines: Vec<_> = printed.out.lines().collect();
    assert_eq!(lines[0], "undecided");
    let missing = "not given: prevent_duplicate, which is {customer:debug:hash}:{pieces:debug:hash}; only its program can write it; \
                   add --on prevent_duplicate=…, as `tallygate top` prints it";
    assert_eq!(lines[1], missing);
    assert!(lines[2].starts_with("1   20 per 1h   19 left   resets in ") && lines.len() == 3, "{printed:?}");
    let json = console.run("peek orders.submit zoe --json").expect(1).json();
    assert_eq!((&json["rules"][0]["used"], json["missing"].as_array().map(Vec::len)), (&1.into(), Some(1)));
    // A value of what only the program can write is refused with the remedy.
    let printed = console.run("peek orders.submit zoe tea").expect(2);
    assert!(printed.errors.contains("as `Debug` writes it, which only the program knows"), "{printed:?}");
    // As `top` prints it, it is taken.
    let label = json["missing"][0]["label"].as_str().unwrap().to_owned();
    let top = console.run_words(&["top", "orders.submit", "--on", &label]).expect(0).out;
    let form = top.split_whitespace().next().unwrap();
    let on = format!("{label}={form}");
    let printed = console.run_words(&["peek", "orders.submit", "zoe", "--on", &on]).expect(1);
    assert!(printed.out.starts_with("denied for ") && printed.out.contains(", as a duplicate\n"), "{printed:?}");
    // An override and a reset take the customer alone.
    let words = ["override", "orders.submit", "30 per 1h", "--subject", "zoe", "--yes"];
    assert!(console.run_words(&words).expect(0).out.contains("30 per 1h"));
    let printed = console.run("peek orders.submit zoe").expect(1);
    assert!(
        printed.out.contains("30 per 1h   29 left") && printed.out.contains("override for this subject"),
        "{printed:?}"
    );
    console.run("reset orders.submit zoe --yes").expect(0);
    assert!(console.run("peek orders.submit zoe").expect(1).out.contains("30 left   unused"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_given_is_named_once_and_says_how_it_is_given() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    // A rule with a key of its own has that for a label, as in the attribute.
    let rules = Policy::builder("reports").key("{user.id}").rule(Rule::sliding_window(9, HOUR));
    let rules = rules.rule_on("{user.org}", Rule::sliding_window(9, HOUR)).key_on("{user.org}", "{user.org}");
    let policy = rules.rule_on("by.hand", Rule::sliding_window(9, HOUR)).build().unwrap();
    let (user, org) = (Subject::of("7"), Subject::of("acme"));
    let check = fleet.check(&policy, &user).subject("{user.org}", &org).subject("by.hand", &org);
    assert!(check.await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("peek reports 7").expect(1);
    let lines: Vec<_> = printed.out.lines().collect();
    let by_hand = "not given: by.hand; only its program can write it; add --on by.hand=…, as `tallygate top` prints it";
    assert_eq!(lines[1..3], [by_hand, "not given: {user.org}; add its value, or --on {user.org}=…"]);
    let printed = console.run_words(&["peek", "reports", "--on", "{user.org}=acme"]).expect(1);
    let main = "not given: the main subject, which is {user.id}; add its value, or --subject …";
    assert!(printed.out.contains(main), "{printed:?}");
}
