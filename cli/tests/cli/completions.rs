//! `completions`, and what closes the output early.

use std::process::Command;

use tallygate::config::Policies;
use tallygate::{Policy, PolicyBuilder, Rule, Subject};
use tallygate_harness::until::until_found;

use crate::console::Console;
use crate::seeded::{HOUR, Seeded, folder, limiter, listed};

/// Returns what a bash offers behind these words, the last of which may be empty.
fn offered(console: &Console<'_>, words: &[&str]) -> Vec<String> {
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let (last, place) = (quoted.last().unwrap(), words.len());
    let line = format!(
        "bash -c 'source <(tallygate completions bash); COMP_WORDS=(tallygate {}); COMP_CWORD={place}; \
         _clap_complete_tallygate tallygate {last} x; printf \"%s\\n\" \"${{COMPREPLY[@]}}\"'",
        quoted.join(" "),
    );
    let printed = console.shell(&line).expect(0);
    assert_eq!(printed.errors, "", "{words:?}");
    printed.out.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_policies_labels_and_rules_are_completed_as_the_server_knows_them() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rules = Policy::builder("search").key("{user}").rule(Rule::sliding_window(9, HOUR));
    let network = Rule::sliding_window(9, HOUR).named("crowd");
    let policy = rules.rule_on("network", network).key_on("network", "{ip}").build().unwrap();
    let (alice, network) = (Subject::of("alice"), Subject::of("n"));
    assert!(fleet.check(&policy, &alice).subject("network", &network).await.unwrap().is_allowed());
    // Whoever may write to the server names these, and a shell would run what they say.
    for name in ["s$(touch x)", "s`touch x`", "--url=redis://elsewhere", "s\u{1b}[2J"] {
        let policy =
            Policy::builder(name).key("{user}").rule(Rule::sliding_window(9, HOUR).named("r;x")).build().unwrap();
        assert!(fleet.check(&policy, &alice).await.unwrap().is_allowed());
    }
    let planned = [Rule::sliding_window(1, HOUR).varying(), Rule::fixed_window(1, HOUR).varying().counting("tokens")];
    let policy = planned.into_iter().fold(Policy::builder("chat"), PolicyBuilder::rule).key("{user}").build().unwrap();
    fleet.apply(&Policies::from_toml("[policy.chat]\nplans = { free = 1, pro = 9 }").unwrap()).unwrap();
    assert!(fleet.check(&policy.with_counts([5, 5]), &alice).await.unwrap().is_allowed());
    until_found("the plans are listed", async || {
        let registered = fleet.registered_policies().await.unwrap();
        registered.find("chat").is_some_and(|chat| chat.plans().count() == 2)
    })
    .await;
    listed(&fleet, 8).await;
    // A busy machine may take longer than a shell waits.
    let offers = async |words: &[&str], expected: &[&str]| {
        until_found(&format!("{words:?} are completed"), async || offered(&console, words) == expected).await;
    };
    for command in ["peek", "top", "reset", "ban", "unban", "bans", "override"] {
        offers(&[command, "s"], &["search", "sms.send"]).await;
    }
    offers(&["top", "search", "--on", ""], &["network"]).await;
    offers(&["top", "login", "--on", ""], &[""]).await;
    offers(&["peek", "search", "bob", "--on", "n"], &["network="]).await;
    offers(&["override", "sms.send", "50 per 1d", "--rule", ""], &["daily"]).await;
    offers(&["override", "--on", ""], &["network"]).await;
    offers(
        &["peek", "chat", "zoe", "--plan", ""],
        &["calls=free", "calls=pro", "free", "pro", "tokens=free", "tokens=pro"],
    )
    .await;
    offers(&["top", "chat", "--plan", "tokens=p"], &["tokens=pro"]).await;
    offers(&["peek", "chat", "zoe", "--cost", ""], &["tokens="]).await;
    offers(&["simul"], &["simulate"]).await;
    // The words before say where the server is.
    let elsewhere = Console { url: "redis://127.0.0.1:1/", ..console.clone() };
    let url = format!("--url={}", console.url);
    until_found("the typed address is asked", async || offered(&elsewhere, &[&url, "top", "lo"]) == ["login"]).await;
    until_found("the typed prefix is asked", async || offered(&console, &["--prefix", "shop", "top", "lo"]) == [""])
        .await;
}

#[test]
fn a_shell_hears_nothing_of_a_server_that_is_away() {
    let folder = folder();
    for url in ["redis://127.0.0.1:1/", "", "nonsense", "memory://"] {
        let console = Console { url, folder: folder.path() };
        assert_eq!(offered(&console, &["top", "s"]), [""], "{url}");
        assert_eq!(offered(&console, &["comp"]), ["completions"], "{url}");
    }
}

#[test]
fn each_shell_has_a_script_that_it_can_read() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let printed = console.run(&format!("completions {shell}")).expect(0);
        assert!(printed.out.contains("TALLYGATE_COMPLETE"), "{shell}");
        // Where the shell is installed, it reads it.
        let file = folder.path().join(shell);
        std::fs::write(&file, printed.out).unwrap();
        if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(read.status.success() || shell == "elvish", "{read:?}");
        }
    }
    let printed = console.run("completions basch").expect(2);
    assert!(printed.errors.contains("'bash'"), "{printed:?}");
}

#[test]
fn a_reader_that_stops_early_is_no_mistake() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.shell("tallygate completions bash | head -n 1; tallygate --help | head -n 1");
    assert_eq!((printed.out.lines().count(), printed.errors.as_str()), (2, ""), "{printed:?}");
}
