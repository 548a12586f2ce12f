//! Who is banned, and the end of these bans.

use tallygate::{Ban, Policy, Rule, Subject};

use crate::console::Printed;
use crate::seeded::{HOUR, MINUTE, Seeded, limiter, listed, login};

/// Bans some subjects of `login`, and `acme` under a policy with a text around its value.
async fn ban_some(seeded: &Seeded, users: &[&str]) {
    let fleet = limiter(seeded.console().url, "tallygate").await;
    for (user, hours) in users.iter().zip(2..) {
        fleet.check(&login(), &Subject::of(user)).ban(hours * HOUR).await.unwrap();
    }
    let ban = Ban::new(3, MINUTE, HOUR);
    let rules = Policy::builder("upload").key("of:{customer}").rule(Rule::sliding_window(1, HOUR));
    let policy =
        rules.rule_on("network", Rule::sliding_window(9, HOUR)).key_on("network", "{ip}").ban(ban).build().unwrap();
    let (acme, network) = (Subject::of("of").and("acme"), Subject::of("n"));
    assert!(fleet.check(&policy, &acme).subject("network", &network).await.unwrap().is_allowed());
    fleet.check(&policy, &acme).ban(MINUTE).await.unwrap();
    listed(&fleet, 3).await;
}

fn first_cells(printed: &Printed) -> Vec<&str> {
    printed.out.lines().map(|line| line.split("   ").next().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_banned_is_listed_under_one_policy_and_under_all() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let nobody = console.run("bans").expect(0);
    assert_eq!(nobody.out, "nobody is banned; 1 subject looked at\n");
    ban_some(&seeded, &["bob", "carol"]).await;
    let all = console.run("bans").expect(0);
    let sum = "3 of 4 subjects banned; to end a ban: tallygate unban login carol";
    // Who is banned longest comes first.
    assert_eq!(first_cells(&all), ["login carol", "login bob", "upload of:acme", sum], "{all:?}");
    assert!(all.out.starts_with("login carol      banned for 3h\n"), "{all:?}");
    let one = console.run("bans upload").expect(0);
    assert_eq!(first_cells(&one)[0], "upload of:acme", "{one:?}");
    let json = console.run("bans login --json").expect(0).json();
    assert_eq!((json["bans"].as_array().map(Vec::len), &json["subjects"]), (Some(2), &3.into()));
    assert_eq!((&json["bans"][1]["policy"], &json["bans"][1]["subject"]), (&"login".into(), &"bob".into()));
    assert!((7_000_000..=7_200_000).contains(&json["bans"][1]["retry_after_ms"].as_u64().unwrap()), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_listed_line_begins_with_the_words_that_end_the_ban() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    ban_some(&seeded, &["a b", "it's $HOME", "50%", "-x", "é"]).await;
    let printed = console.run("bans").expect(0);
    let lines = first_cells(&printed);
    let (_, words) = lines.split_last().unwrap();
    assert_eq!(words.len(), 6, "{printed:?}");
    for words in words {
        console.shell(&format!("tallygate unban {words} --yes")).expect(0);
    }
    let nobody = console.run("bans").expect(0);
    assert!(nobody.out.starts_with("nobody is banned; "), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_bans_of_a_policy_end_at_once_and_those_of_others_stay() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    ban_some(&seeded, &["bob", "carol"]).await;
    let asked = console.run("unban login --all").expect(2);
    assert!(asked.errors.contains("`--yes`"), "{asked:?}");
    assert_eq!(console.run("unban login --all --yes").expect(0).out, "no longer banned under login: 2 subjects\n");
    assert_eq!(first_cells(&console.run("bans").expect(0))[0], "upload of:acme");
    assert_eq!(console.run("unban login --all --yes").expect(0).out, "nobody is banned under login\n");
    let json = console.run("unban upload --all --yes --json").expect(0).json();
    assert_eq!(json["unbanned"], serde_json::json!(["of:acme"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for (words, part) in [
        ("bans sms.send", "policy `sms.send` has no ban, so nobody can be banned under it; add `ban(…)` to the policy"),
        ("bans logn", "did you mean `login`?"),
        ("bans login alice", "unexpected argument"),
        ("unban login alice --all", "cannot be used with"),
        ("unban login --subject alice --all", "cannot be used with"),
        ("unban login --yes", "a value is missing for `user`"),
        ("unban --all", "<POLICY>"),
        ("unban sms.send --all", "has no ban"),
        ("bans --prefix other", "no policy is listed under the prefix `other`"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{words}: {printed:?}");
    }
}
