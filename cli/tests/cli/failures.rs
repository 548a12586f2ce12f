//! What cannot be done, and what the errors say.

use tallygate::Policy;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::Server;

use crate::console::{Console, PROGRAM};
use crate::seeded::{HOUR, Seeded, folder, limiter, listed};

#[test]
fn what_the_environment_sets_is_not_shown_as_required() {
    let folder = folder();
    let console = Console { url: "redis://127.0.0.1:1/", folder: folder.path() };
    let printed = console.run("peek").expect(2);
    assert!(printed.errors.contains("Usage: tallygate peek [OPTIONS] <POLICY> [VALUE]..."), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_variable_is_as_one_that_is_not_set_except_for_the_prefix() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    console.shell("TALLYGATE_SECRET_FILE= TALLYGATE_OPERATOR= tallygate peek sms.send 138").expect(0);
    let printed = console.shell("TALLYGATE_URL= TALLYGATE_TIMEOUT= tallygate policies").expect(2);
    assert!(printed.errors.contains("write `--url redis://…`, or set TALLYGATE_URL"), "{printed:?}");
    let printed = console.shell("TALLYGATE_PREFIX= tallygate policies").expect(2);
    assert!(printed.errors.contains("`--prefix` must not be empty"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_policies_are_corrected_and_an_empty_list_is_explained() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for command in ["peek", "top", "reset", "ban", "unban"] {
        let words = if command == "top" { "top sms.snd".to_owned() } else { format!("{command} sms.snd 138") };
        let printed = console.run(&words).expect(2);
        assert!(
            printed.errors.contains("`sms.snd`") && printed.errors.contains("did you mean `sms.send`?"),
            "{printed:?}"
        );
    }
    let printed = console.run("peek sms.send 138 --prefix shop").expect(2);
    assert!(printed.errors.contains("no policy is listed under the prefix `shop`"), "{printed:?}");
    let printed = console.run("policies --prefix shop").expect(0);
    assert!(printed.out.contains("no policy is listed under the prefix `shop`"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_do_not_fit_the_key_are_a_mistake() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for (words, part) in [
        ("peek sms.send", "`phone`"),
        ("peek sms.send 138 139", "more values"),
        ("peek sms.send 138 --subject sms:138", "leave the values out"),
        ("peek sms.send 138 --on ip=x", "`ip`"),
        ("peek sms.send 138 --every 5s", "--watch"),
        ("peek sms.send 138 --watch --json", "leave `--json` out"),
        ("peek sms.send 138 --watch", "needs a terminal"),
        ("peek sms.send 138 --watch --every 0s", "`--every` must be at least 50ms"),
        ("peek sms.send 138 --watch --every 49ms", "`--every` must be at least 50ms"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{printed:?}");
    }
}

#[test]
fn a_server_that_is_away_is_distinguished_from_one_that_refuses() {
    let folder = folder();
    // No server uses the first port.
    let console = Console { url: "redis://user:hunter2@127.0.0.1:1/", folder: folder.path() };
    for words in ["policies", "peek sms.send 138", "top sms.send", "override --list", "doctor"] {
        let printed = console.run(words).expect(3);
        assert!(printed.errors.starts_with("tallygate: `url`: redis at 127.0.0.1"), "{printed:?}");
        assert!(!printed.errors.contains("hunter2") && printed.out.is_empty(), "{printed:?}");
    }
    let server = Server::start_with(&["--requirepass", "sesame"]);
    let wrong = server.url().replace("://", "://:hunter2@");
    for url in [server.url(), wrong] {
        let printed = Console { url: &url, ..console }.run("policies").expect(4);
        assert!(printed.errors.contains("password") && !printed.errors.contains("hunter2"), "{printed:?}");
    }
}

#[test]
fn an_address_that_leads_nowhere_is_a_mistake_in_the_words() {
    let folder = folder();
    for (url, part) in
        [("redis:/127.0.0.1", "`url`"), ("memory://", "inside of the process"), ("", "set TALLYGATE_URL")]
    {
        let printed = Console { url, folder: folder.path() }.run("policies").expect(2);
        assert!(printed.errors.contains(part), "{printed:?}");
    }
    let console = Console { url: "redis://127.0.0.1:1/", folder: folder.path() };
    let printed = console.shell(&format!("unset TALLYGATE_URL; {PROGRAM} policies")).expect(2);
    assert!(printed.errors.contains("write `--url redis://…`, or set TALLYGATE_URL"), "{printed:?}");
    for (words, part) in [
        (
            "policies --prefix a:b",
            "`--prefix` may only contain letters, digits and `. _ @ + ~ -`, like `--prefix shop`",
        ),
        ("policies --secret-file none", "`--secret-file`"),
        ("policies --timeout 0s", "`--timeout` must be longer than zero, like `--timeout 2s`"),
        (
            "policies --ca-file secret",
            "`--ca-file` holds no certificate, or a broken one; give a file of certificates as PEM",
        ),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{printed:?}");
    }
    // No address with its password stands in the help.
    let console = Console { url: "redis://:hunter2@127.0.0.1:1/", folder: folder.path() };
    assert!(!console.run("peek --help").expect(0).out.contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_away_in_the_middle_is_an_error() {
    let seeded = Seeded::start().await;
    let fleet = limiter(seeded.console().url, "tallygate").await;
    for subject in 0..200 {
        let subject = tallygate::Subject::of("sms").and(subject);
        assert!(fleet.check(&crate::seeded::sms(), &subject).await.unwrap().is_allowed());
    }
    let proxy = Proxy::start(seeded.server.port()).await;
    // The subjects are found, and then the server is gone.
    proxy.close_at_scripts();
    let url = proxy.url();
    let console = Console { url: &url, ..seeded.console() };
    let printed = console.run("top sms.send").expect(3);
    assert!(printed.out.is_empty() && printed.errors.starts_with("tallygate: redis"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_program_or_another_version_has_stored_is_said() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let server = &seeded.server;
    // A policy in a form that a later version may have.
    server.ask::<()>("HSET tallygate:!policies crate%3A%3Af 9");
    let other = "policy `crate::f` is listed by another version: ";
    let remedy = "; use the `tallygate` of that version\n";
    let printed = console.run("policies").expect(0);
    assert!(printed.out.contains(other) && printed.out.ends_with(remedy), "{printed:?}");
    for words in ["peek crate::f 1", "override crate::f --list"] {
        let printed = console.run(words).expect(4);
        assert!(printed.errors.contains(other) && printed.errors.ends_with(remedy), "{printed:?}");
    }
    assert_eq!(console.run("policies --json").json()["unreadable"][0]["name"], "crate::f");
    // The list of another program.
    server.ask::<()>("DEL tallygate:!policies");
    server.ask::<()>("SET tallygate:!policies x");
    let printed = console.run("policies").expect(4);
    assert!(printed.errors.contains("WRONGTYPE"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_from_the_server_control_no_terminal() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rule = tallygate::Rule::sliding_window(1, HOUR);
    let policy = Policy::builder("evil\u{1b}[2J").key("").rule(rule).build().unwrap();
    assert!(fleet.check(&policy, &tallygate::Subject::everyone()).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let printed = console.run("policies").expect(0);
    assert!(!printed.out.contains('\u{1b}') && printed.out.contains("evil\\u{1b}[2J"), "{printed:?}");
}
