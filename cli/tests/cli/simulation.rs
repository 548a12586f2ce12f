//! `simulate`: limits on calls of the past.

use std::fs;

use crate::console::Console;
use crate::seeded::{folder, write};

#[test]
fn a_trace_is_decided_as_the_documentation_says_and_for_scripts() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.run("simulate limits.toml sms.send calls.csv").expect(0);
    assert_eq!(printed.out, "4 of 6 admitted; denied: rule 0 2; longest wait 50s\n");
    assert_eq!(printed.errors, "");
    let json = console.run("simulate limits.toml sms.send calls.csv --json").expect(0).json();
    assert_eq!(json["decided"]["admitted"], 4);
    assert_eq!(json["decided"]["longest_wait_ms"], 50_000);
    assert_eq!(json["decided"]["denied"]["rules"][2]["name"], "daily");
}

#[test]
fn rules_of_a_file_in_shadow_are_shown_apart() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let limits = "[policy.\"sms.send\"]\nrules = [\"5 per 1h\", \"1 per 1m shadow\"]\n";
    write(folder.path(), "tried.toml", limits);
    let line = "6 of 6 admitted; denied in shadow: rule 1 2\n";
    assert_eq!(console.run("simulate tried.toml sms.send calls.csv").expect(0).out, line);
    let json = console.run("simulate tried.toml sms.send calls.csv --json").expect(0).json();
    let [denied, tried] = ["denied", "denied_in_shadow"].map(|member| &json["decided"][member]);
    assert_eq!((&denied["total"], &tried["total"], &tried["rules"][1]["denied"]), (&0.into(), &2.into(), &2.into()));
    let printed = console.run("simulate limits.toml sms.send calls.csv --compare tried.toml").expect(0);
    let lines: Vec<_> = printed.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[1], format!("tried.toml {}", line.trim_end()));
    assert_eq!(lines[3], "newly admitted 2 calls: rule 0 2");
}

#[test]
fn large_numbers_are_grouped_and_all_rules_that_deny_are_named() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let rows = (0..10_000).map(|call| format!("{},{}\n", 1_800_000_000 + call * 30, call % 3));
    let trace = format!("time,subject\n{}", rows.collect::<String>());
    let printed = console.run_with("simulate limits.toml sms.send", &trace).expect(0);
    // Each of three subjects makes a call every 90 seconds: 10 a day, for three and a half days.
    assert!(printed.out.contains(" of 10,000 admitted; denied: rule 1 "), "{printed:?}");
    assert!(printed.out.contains(", rule 2 (daily) "), "{printed:?}");
}

#[test]
fn a_row_that_is_no_call_stops_it_or_is_left_out() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.run("simulate limits.toml sms.send mistaken.csv --svg decided.svg").expect(2);
    assert!(printed.errors.starts_with("tallygate: mistaken.csv: line 3: `time` must be like"), "{printed:?}");
    assert!(printed.errors.contains("`--skip-bad-rows`"), "{printed:?}");
    assert_eq!(printed.out, "");
    assert!(!folder.path().join("decided.svg").exists(), "a picture of a part");

    let printed = console.run("simulate limits.toml sms.send mistaken.csv --skip-bad-rows --json").expect(0);
    assert!(printed.errors.starts_with("line 3: "), "{printed:?}");
    assert_eq!(printed.json()["skipped_rows"], 1);
}

#[test]
fn a_trace_that_is_none_is_a_mistake() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    for (trace, part) in [
        ("", "name the columns"),
        ("when,subject\n1,a\n", "line 1"),
        ("time,subject\n1800000010,a\n1800000000,a\n", "line 3"),
    ] {
        let printed = console.run_with("simulate limits.toml sms.send", trace).expect(2);
        assert!(printed.errors.contains(part), "{printed:?}");
    }
    console.run("simulate limits.toml sms.send none.csv").expect(2);
}

#[test]
fn a_trace_has_a_column_for_each_unit_that_a_rule_counts() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    write(folder.path(), "chat.toml", "[policy.chat]\nrules = [\"3 per 1m\", \"20_000 tokens per 1m\"]\n");
    write(folder.path(), "plain.toml", "[policy.chat]\nrules = [\"3 per 1m\"]\n");
    let trace = "time,subject,tokens\n1800000000,a,15000\n1800000001,a,6000\n1800000002,a,5000\n1800000003,b,\n";
    let printed = console.run_with("simulate chat.toml chat", trace).expect(0);
    assert_eq!(printed.out, "3 of 4 admitted; denied: rule 1 1; longest wait 59s\n");
    let later = "time,subject,tokens\n1800000000,a,20000\n1800000001,a,\n1800000002,a,0\n";
    let printed = console.run_with("simulate chat.toml chat", later).expect(0);
    assert_eq!(
        printed.out, "2 of 3 admitted; denied: rule 1 1; longest wait 59s\n",
        "only a call that names 0 costs nothing"
    );
    let compared = console.run_with("simulate plain.toml chat --compare chat.toml", trace).expect(0);
    assert!(compared.out.contains("1 call: rule 1 1"), "{compared:?}");
    for (trace, mistake) in [
        (
            "time,tokns\n",
            "column `tokns` is unknown; the columns are `time`, `subject`, `cost`, `pause`, `tokens` and `subject:label`",
        ),
        ("time,tokens\n1800000000,many\n", "line 2: `tokens` must be a whole number, like 3"),
    ] {
        let printed = console.run_with("simulate chat.toml chat", trace).expect(2);
        assert!(printed.errors.contains(mistake), "{printed:?}");
    }
}

#[test]
fn a_trace_of_calls_to_others_has_the_pauses_that_these_asked_for() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    write(folder.path(), "partner.toml", "[policy.partner]\nrules = [\"3 per 1m\"]\n");
    write(folder.path(), "slower.toml", "[policy.partner]\nrules = [\"1 per 1m\"]\n");
    let trace = "time,pause\n1800000000,\n1800000001,30\n1800000002,\n1800000031,\n";
    let printed = console.run_with("simulate partner.toml partner", trace).expect(0);
    assert_eq!(printed.out, "3 of 4 admitted; denied: pause 1; longest wait 29s\n");
    let words = "simulate partner.toml partner --compare slower.toml --svg decided.svg --by-rule --json";
    let json = console.run_with(words, trace).expect(0).json();
    // Who does not make the call does not hear of the pause.
    let by_pause = |of: &str| json[of]["denied"]["pause"].as_u64();
    assert_eq!((by_pause("before"), by_pause("after")), (Some(1), Some(0)));
    let svg = fs::read_to_string(folder.path().join("decided.svg")).unwrap();
    assert!(svg.contains("partner.toml: pause") && !svg.contains("slower.toml: pause"), "{svg}");
}

#[test]
fn two_files_are_compared_and_drawn() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let words = "simulate limits.toml sms.send calls.csv --compare other.toml --svg decided.svg --json";
    let json = console.run(words).expect(0).json();
    assert_eq!((&json["before"]["admitted"], &json["after"]["admitted"]), (&4.into(), &6.into()));
    assert_eq!(json["newly_admitted"]["total"], 2);
    let svg = fs::read_to_string(folder.path().join("decided.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("limits.toml") && svg.contains("other.toml"), "{svg}");
    assert!(svg.contains("2027-01-15T08:00:00Z"), "{svg}");
    assert!(!svg.contains("rule 0"), "{svg}");
}

#[test]
fn a_picture_shows_each_rule_that_denies_apart_if_that_is_asked_for() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    console.run("simulate limits.toml sms.send calls.csv --compare other.toml --svg decided.svg --by-rule").expect(0);
    let svg = fs::read_to_string(folder.path().join("decided.svg")).unwrap();
    assert!(svg.contains("limits.toml: rule 0, 1 per 1m"), "{svg}");
    assert!(!svg.contains("rule 2") && !svg.contains("other.toml: "), "{svg}");
    // The last call comes after 130 seconds.
    assert!(svg.contains("08:02") && svg.contains("2027-01-15T08:02:11Z") && !svg.contains("08:03"), "{svg}");
    let refused = console.run("simulate limits.toml sms.send calls.csv --by-rule").expect(2);
    assert!(refused.errors.contains("--svg"), "{refused:?}");
}

#[test]
fn a_policy_that_the_file_does_not_have_is_a_mistake_with_its_remedy() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.run("simulate limits.toml sms.snd calls.csv").expect(2);
    assert!(printed.errors.contains("no policy `sms.snd`; did you mean `sms.send`?"), "{printed:?}");
    write(folder.path(), "bad.toml", "[policy.a]\nrules = ['0 per 1s']\n");
    let printed = console.run("simulate bad.toml a calls.csv").expect(2);
    assert!(printed.errors.contains("bad.toml:2:10: `count` must be at least 1"), "{printed:?}");
}

#[test]
fn rules_with_keys_of_their_own_count_the_columns_of_these() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let limits = "[policy.a]\nrules = ['9 per 1m', { count = 1, per = '1m', key = '{ip}' }]\n";
    write(folder.path(), "two.toml", limits);
    let trace = "time,subject,subject:{ip}\n1800000000,a,x\n1800000001,b,x\n1800000002,a,y\n";
    let printed = console.run_with("simulate two.toml a", trace).expect(0);
    assert_eq!(printed.out, "2 of 3 admitted; denied: rule 1 1; longest wait 59s\n");
}
