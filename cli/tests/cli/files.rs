//! `check`: the mistakes in files of limits.

use crate::console::Console;
use crate::seeded::{folder, write};

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
