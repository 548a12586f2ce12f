//! Every part is included, and its header names exactly the locals that it reads and sets.

mod names;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use self::names::Names;

const SCRIPTS: [&str; 12] = [
    "decide.lua",
    "paused.lua",
    "paused_alone.lua",
    "pause.lua",
    "probe.lua",
    "windows.lua",
    "windows_alone.lua",
    "windows_together.lua",
    "refund.lua",
    "lease.lua",
    "ban.lua",
    "register.lua",
];

/// Returns the text of a file in the folder of the scripts.
fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Returns the parts, each by its name and with its text.
fn parts() -> Vec<(String, String)> {
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("parts")).unwrap();
    let names = folder.map(|entry| format!("parts/{}", entry.unwrap().file_name().into_string().unwrap()));
    names.map(|name| (name.clone(), read(&name))).collect()
}

/// Returns the names in the lines of a header that begin with `label`.
fn listed<'a>(part: &'a str, label: &str) -> BTreeSet<&'a str> {
    let lines: Vec<_> = part.lines().filter_map(|line| line.strip_prefix(label)).collect();
    assert!(!lines.is_empty(), "no `{label}`");
    let names = lines.iter().flat_map(|line| line.trim().trim_end_matches(',').split(", "));
    names.filter(|name| *name != "nothing").collect()
}

#[test]
fn every_part_is_included() {
    let scripts = SCRIPTS.map(read).into_iter();
    let all: Vec<_> = parts().into_iter().map(|(_, text)| text).chain(scripts).collect();
    for (part, _) in parts() {
        let directive = format!("--- @include {part}\n");
        assert!(all.iter().any(|text| text.contains(&directive)), "{part} is included nowhere");
    }
}

#[test]
fn the_page_names_only_scripts_and_parts_where_it_says_what_sets_a_local() {
    let page = read("README.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| local |")).skip(2);
    let rows: Vec<_> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "the table of locals is read");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for row in rows {
        let setters = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        for name in setters.split('`').skip(1).step_by(2) {
            let files = [format!("{name}.lua"), format!("parts/{name}.lua")];
            assert!(files.iter().any(|file| folder.join(file).exists()), "{name} in {row}");
        }
    }
}

#[test]
fn every_loop_has_a_bound_that_its_first_line_shows() {
    let others = ["override.lua", "denied.lua"].map(|script| (script.to_owned(), read(script)));
    let scripts = SCRIPTS.map(|script| (script.to_owned(), read(script)));
    for (file, text) in parts().into_iter().chain(scripts).chain(others) {
        let code = text.split_once("]]").map_or(&*text, |(_, code)| code);
        let code = code.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
        for line in code {
            let mut words = line.split_whitespace();
            let is_unbounded = line.contains(" in ") || line.contains("function") || line.contains("goto");
            assert!(!words.any(|word| matches!(word, "while" | "repeat")) && !is_unbounded, "{file}: {line}");
        }
    }
}

#[test]
fn the_header_of_a_part_names_what_it_reads_and_sets() {
    for (part, text) in parts() {
        let included = included(&text);
        let names = Names::of(&included);
        let reads = listed(&text, "-- Reads:");
        let sets = listed(&text, "-- Sets:");
        assert!(names.read.is_subset(&reads), "{part} also reads {:?}", &names.read - &reads);
        assert!(reads.is_subset(&names.used), "{part} does not read {:?}", &reads - &names.used);
        assert!(names.assigned.is_subset(&sets), "{part} also sets {:?}", &names.assigned - &sets);
        let set = &names.assigned | &names.declared;
        assert!(sets.is_subset(&set), "{part} does not set {:?}", &sets - &set);
    }
}

#[test]
fn what_a_part_reads_is_set_by_a_script_or_by_another_part() {
    let parts = parts();
    let scripts = SCRIPTS.map(read);
    let code = scripts.iter().map(|script| script.split_once("]]").unwrap().1);
    let mut set: BTreeSet<_> = parts.iter().flat_map(|(_, text)| listed(text, "-- Sets:")).collect();
    set.extend(code.flat_map(|code| Names::of(code).own));
    set.extend(including(&parts));
    // Locals of each rule of a policy.
    set.extend(["RULE", "back_RULE", "span_RULE"]);
    for (part, text) in &parts {
        let reads = listed(text, "-- Reads:");
        assert!(reads.is_subset(&set), "nothing sets {:?}, which {part} reads", &reads - &set);
    }
}

/// Returns what parts that include others declare.
fn including(parts: &[(String, String)]) -> impl Iterator<Item = &str> {
    let texts = parts.iter().map(|(_, text)| text.as_str()).filter(|text| text.contains("--- @include "));
    texts.flat_map(|text| Names::of(text).own)
}

/// Returns the text of a part with all that it includes.
fn included(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| match line.trim_start().strip_prefix("--- @include ") {
        Some(part) => all + &included(&read(part)),
        None => all + line + "\n",
    })
}
