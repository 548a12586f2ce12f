//! `check`: the mistakes in files of limits.

use crate::console::Console;
use crate::seeded::{Seeded, folder, write};

#[test]
fn all_mistakes_of_all_files_are_printed_where_editors_find_them() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    write(folder.path(), "one.toml", "[policy.a]\nrules = ['0 per 1s', '5 per hour']\n");
    write(folder.path(), "two.toml", "[policy.b]\nrules = 7\n");
    let printed = console.run("check one.toml limits.toml two.toml").expect(1);
    let lines: Vec<_> = printed.out.lines().collect();
    assert_eq!(lines[0], "one.toml:2:10: `count` must be at least 1, like `count = 10`");
    assert!(lines[1].starts_with("one.toml:2:22: `5 per hour` is not a rule"), "{printed:?}");
    assert_eq!(lines[2], "limits.toml: 1 policy, no mistakes");
    assert!(lines[3].starts_with("two.toml:2:9: `rules` must be a list"), "{printed:?}");

    let json = console.run("check one.toml limits.toml --json").expect(1).json();
    assert_eq!(json["files"][0]["mistakes"][0]["line"], 2);
    assert_eq!(json["files"][0]["mistakes"][0]["column"], 10);
    assert_eq!(json["files"][1]["policies"][0], "sms.send");
    assert_eq!(json["files"][1]["mistakes"].as_array().map(Vec::len), Some(0));
}

#[test]
fn limits_of_requests_are_known_and_stdin_is_a_file() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let requests = "[policy.login]\nmatch = { path = '/login' }\nkey = '{@ip}'\nrules = ['5 per 1m']\n";
    assert_eq!(console.run_with("check -", requests).expect(0).out, "-: 1 policy, no mistakes\n");
    let unlisted = console.run_with("check -", &requests.replace("@ip", "@usr")).expect(0).out;
    assert!(
        unlisted.starts_with("-:3:7: warning: whether requests have `{@usr}`, only the program knows; "),
        "{unlisted}"
    );
    let listed = format!("values = ['user']\n{}", requests.replace("@ip", "@usr"));
    let mistake = console.run_with("check -", &listed).expect(1).out;
    assert_eq!(mistake, "-:4:7: `{@usr}` is no value that `values` lists; did you mean `user`?\n");
    let empty = console.run_with("check -", "# nothing\n").expect(1).out;
    assert!(empty.starts_with("-:1:1: there are no policies; "), "{empty}");
    assert_eq!(console.run_with("check -", "[end]\n").expect(0).out, "-: 0 policies, no mistakes\n");
}

#[test]
fn a_misspelt_plan_is_found_where_the_file_lists_its_plans() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let plans = "[policy.api]\nplans = { free = 100, prp = 10_000 }\n";
    let unlisted = console.run_with("check -", plans).expect(0).out;
    let warning = "-:2:1: warning: whether these are the plans of the program, only it knows; list all of them before the \
                   policies, like `plans = [\"free\", \"prp\"]`\n";
    assert_eq!(unlisted, format!("{warning}-: 1 policy, no mistakes\n"));
    let listed = console.run_with("check -", &format!("plans = ['free', 'pro']\n{plans}")).expect(1).out;
    assert_eq!(listed, "-:3:23: no plan `prp`; did you mean `pro`?\n");
    let with_counts = console.run_with("check -", &format!("[plans]\nfree = 100\npro = 9\n{plans}")).expect(1).out;
    assert_eq!(with_counts, "-:5:23: no plan `prp`; did you mean `pro`?\n");
}

#[test]
fn a_unit_in_the_plans_of_all_policies_that_no_policy_of_the_file_counts_is_a_warning() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let policy = "[policy.chat]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 1m', '900 tokens per 1m']\n\
                  cost = { tokens = 5 }\nplan = '{@plan}'\n";
    let check = |unit: &str| {
        let file = format!("[plans]\nfree = {{ calls = 3 }}\npro = {{ calls = 20, {unit} = 60_000 }}\n{policy}");
        console.run_with("check -", &format!("values = ['plan']\n{file}")).expect(0).out
    };
    assert_eq!(check("tokens"), "-: 1 policy, no mistakes\n");
    let warning = |unit: &str, remedy: &str| {
        format!(
            "-:4:21: warning: no policy of this file counts `{unit}`, and only the program knows whether its own do; {remedy}\n\
             -: 1 policy, no mistakes\n"
        )
    };
    assert_eq!(check("tokns"), warning("tokns", "did you mean `tokens`?"));
    assert_eq!(check("bytes"), warning("bytes", "add a rule that does, or remove it"));
    // Without a policy that has the counts of plans, they are for the program.
    let of_program = "[plans]\npro = { calls = 20, bytes = 60_000 }\n[end]\n";
    assert_eq!(console.run_with("check -", of_program).expect(0).out, "-: 0 policies, no mistakes\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_in_the_plans_of_all_policies_is_compared_with_those_that_processes_count() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let file = |unit: &str| format!("[plans]\npro = {{ calls = 20, {unit} = 60_000 }}\n[end]\n");
    assert_eq!(
        console.run_with("check -", &file("cals")).expect(1).out,
        "-:2:21: no policy counts `cals`; did you mean `calls`?\n"
    );
    console.run_with("check -", &file("bytes")).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_compared_with_the_policies_that_processes_use() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    assert_eq!(
        console.run("check limits.toml").expect(0).out,
        "limits.toml: 1 policy, no mistakes beside 2 policies in use\n"
    );
    let requests = "[policy.home]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['5 per 1m']\n";
    let text = format!(
        "[policy.'sms.sned']\nrules = ['1 per 1m']\n[policy.login]\nkey = '{{ip}}'\nrules = ['1 per 1m']\n{requests}"
    );
    write(console.folder, "typo.toml", &text);
    let printed = console.run("check typo.toml").expect(1).out;
    let remedy = "write `key = \"{user}\"`, or remove it";
    assert_eq!(
        printed,
        format!(
            "typo.toml:1:9: no process has used a policy `sms.sned` within a week; did you mean `sms.send`?\n\
             typo.toml:4:7: the key of this policy is a part of the program: {remedy}\n"
        )
    );
    let json = console.run("check limits.toml typo.toml --json").expect(1).json();
    assert_eq!((&json["compared_with"], &json["files"][1]["mistakes"][1]["line"]), (&2.into(), &4.into()));

    let printed = console.run("check typo.toml --prefix other").expect(0).out;
    assert!(printed.contains("compared with nothing: no policy is listed under the prefix `other`"), "{printed}");
}

#[test]
fn a_file_that_cannot_be_read_is_no_mistake_in_it() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.run("check none.toml").expect(2);
    assert!(printed.errors.starts_with("tallygate: none.toml cannot be read"), "{printed:?}");
    write(folder.path(), "binary.toml", "");
    std::fs::write(folder.path().join("binary.toml"), [0xff, 0xfe]).unwrap();
    console.run("check binary.toml").expect(2);
}

#[test]
fn misspelt_words_are_corrected() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.run("chekc limits.toml").expect(2);
    assert!(printed.errors.contains("'check'"), "{printed:?}");
    let printed = console.run("check --jsno limits.toml").expect(2);
    assert!(printed.errors.contains("'--json'"), "{printed:?}");
}
