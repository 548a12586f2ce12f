//! Checks that each place that has to know the arguments of the attribute knows all of them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use proc_macro2::TokenStream;
use tallygate_rules::synonym;

use crate::pipeline::try_limit;

/// Each list of arguments: its name, a call of it with an unknown argument, and the heading of its table in
/// `rate_limit.md`.
const LISTS: [(&str, &str, &str); 6] = [
    ("", "nobody", "# Arguments"),
    ("rule", "rule(nobody)", "# Rules"),
    ("prevent_duplicate", "prevent_duplicate(nobody)", "# Arguments"),
    ("concurrency", "concurrency(nobody)", "# Concurrency"),
    ("ban", "ban(nobody)", "# Bans"),
    ("unit", "unit(\"tokens\", nobody)", "# Units"),
];

/// Arguments for which no other library has a word.
const WITHOUT_SYNONYMS: [&str; 5] = ["prefetch", "subject", "openapi", "crate", "until"];

/// Arguments that nobody writes in a rule by mistake.
const NEVER_IN_A_RULE: [&str; 4] = ["rule", "policy", "subject", "crate"];

/// Returns all arguments, each once. The parser lists them in its error about an unknown argument.
pub(crate) fn all() -> Vec<String> {
    let mut all: Vec<_> = LISTS.iter().flat_map(|(_, call, _)| known(call)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn known(call: &str) -> Vec<String> {
    let mistakes = mistakes(call);
    let listed = mistakes.iter().find_map(|mistake| mistake.split_once("the arguments are "));
    let (_, listed) = listed.unwrap_or_else(|| panic!("`{call}` lists no arguments"));
    listed.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

fn mistakes(attribute: &str) -> Vec<String> {
    let attribute: TokenStream = attribute.parse().expect("an attribute consists of tokens");
    let function = quote::quote! { async fn f() -> Result<(), Rejection> { body } };
    let mistakes = try_limit(&attribute, &function).err();
    mistakes.into_iter().flatten().map(|mistake| mistake.to_string()).collect()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns all attributes in the sources of a folder and its subfolders.
fn attributes(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let of_file = |path: PathBuf| {
        if path.is_dir() {
            return attributes(&path);
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let written = text.split("rate_limit(").skip(1).filter_map(|behind| behind.split(")]").next());
        written.flat_map(|attribute| [attribute, ")\n"]).collect()
    };
    paths.map(of_file).collect()
}

/// Returns whether a text uses an argument: `name = …`, `name(…)`, or `name` alone between commas and parentheses.
fn uses(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].trim_start();
        !before.is_some_and(|before| before.is_alphanumeric() || ['_', '.', ':'].contains(&before))
            && (after.is_empty() || after.starts_with(['=', '(', ',', ')', '\n', '`', '"']))
    })
}

fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let start = page.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("`{heading}` is missing"));
    let section = &page[start + 1 + heading.len()..];
    section.find("\n# ").map_or(section, |end| &section[..end])
}

#[test]
fn each_place_that_has_to_know_an_argument_knows_it() {
    let mut missing = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (reference, dictionary) = (read("macros/rate_limit.md"), read("fuzz/attribute.dict"));
    let accepted = attributes(&root.join("tests/tests")) + &attributes(&root.join("web-tests/tests"));
    let refused = attributes(&root.join("tests/ui/fail"));
    for (list, call, heading) in LISTS {
        for name in known(call) {
            let mut expect = |place: &str, is_known: bool| {
                if !is_known {
                    missing.push(format!("`{name}` of `{list}` is missing from {place}"));
                }
            };
            expect(&format!("`{heading}` in macros/rate_limit.md"), uses(section(&reference, heading), &name));
            expect("fuzz/attribute.dict", dictionary.contains(&format!("\"{name}\"")));
            expect(
                "`SYNONYMS` in rules/src/suggestion.rs",
                synonym(&name, &[&*name]).is_some() || WITHOUT_SYNONYMS.contains(&&*name),
            );
            expect("`ARGUMENTS` in macros/src/random.rs", crate::random::ARGUMENTS.iter().any(|one| uses(one, &name)));
            expect("the tests in tests/tests and web-tests/tests", uses(&accepted, &name));
            expect("the mistakes in tests/ui/fail", uses(&refused, &name));
        }
    }
    let of_rules = known("rule(nobody)");
    let is_expected = |name: &&String| !of_rules.contains(*name) && !NEVER_IN_A_RULE.contains(&name.as_str());
    for name in known("nobody").iter().filter(is_expected) {
        let said = mistakes(&format!("rule(count = 1, per = \"1s\", {name})"));
        if said.iter().any(|mistake| mistake.starts_with("unknown argument")) {
            missing.push(format!("a rule does not say where `{name}` belongs: see macros/src/model/rule.rs"));
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}
