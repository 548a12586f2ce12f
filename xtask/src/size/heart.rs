//! How far a reader has to look to follow one decision. These figures are for comparison: a new name alone makes none better.

use crate::source::SourceFile;

/// Where the stores are.
const STORES: [&str; 2] = ["runtime/src/store.rs", "runtime/src/store/"];

/// What decides a call, above the stores.
const HEART: [&str; 4] = ["limiter", "store.rs", "call", "decision"];

/// The verbs by which a function of the heart decides.
const VERBS: [&str; 5] = ["decide", "attempt", "admit", "outcome", "deny"];

/// How code names a kind of store.
const KINDS: [&str; 4] = ["::Memory", "::Redis", "store::memory", "store::redis"];

/// How code names the store of Redis.
const REDIS: &str = "Redis";

/// The files of algorithms have this word in their path.
const ALGORITHM: &str = "algorithm";

/// Returns the figures of the files of the library.
pub(super) fn figures(library: &[Vec<SourceFile>]) -> [(&'static str, usize); 5] {
    let files: Vec<_> = library.iter().flatten().collect();
    let runtime = || files.iter().filter(|file| file.path.starts_with("runtime/"));
    let above = || runtime().filter(|file| !is_in(&file.path, &STORES));
    let in_heart = |path: &str| path.strip_prefix("runtime/src/").is_some_and(|path| is_in(path, &HEART));
    let heart = runtime().filter(|file| in_heart(&file.path));
    let naming = files.iter().filter(|file| !file.path.contains(ALGORITHM) && names_algorithm(file));
    [
        ("lines that name a kind of store above the stores", above().map(|file| count(file, names_kind)).sum()),
        ("functions above them that take that of Redis", above().map(|file| taking_redis(file)).sum()),
        ("functions decide…, attempt…, … in the heart", heart.map(|file| count(file, is_deciding)).sum()),
        ("`cfg` lines in the runtime", runtime().map(|file| count(file, is_cfg)).sum()),
        ("files that name an algorithm, but those of one", naming.count()),
    ]
}

fn is_in(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn count(file: &SourceFile, is_counted: fn(&str) -> bool) -> usize {
    file.lines.iter().filter(|line| is_counted(&line.code)).count()
}

fn names_kind(code: &str) -> bool {
    KINDS.iter().any(|kind| code.split(kind).skip(1).any(ends_word))
}

/// Whether a word ends where this text begins.
fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

fn taking_redis(file: &SourceFile) -> usize {
    let code: String = file.lines.iter().map(|line| line.code.clone() + "\n").collect();
    let signatures = code.split("fn ").skip(1).map(|item| item.split(['{', ';']).next().unwrap_or_default());
    let arguments = signatures.map(|signature| signature.split("->").next().unwrap_or_default());
    arguments.filter(|text| text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == REDIS)).count()
}

fn is_deciding(code: &str) -> bool {
    let name = code.split("fn ").nth(1).unwrap_or_default();
    let verb = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    !code.starts_with('"') && VERBS.contains(&verb)
}

fn is_cfg(code: &str) -> bool {
    ["#[cfg", "#![cfg"].iter().any(|start| code.starts_with(start)) || code.contains("cfg!(")
}

/// Whether a file names a variant, such as `Algorithm::FixedWindow`.
fn names_algorithm(file: &SourceFile) -> bool {
    let is_variant = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_uppercase());
    file.lines.iter().any(|line| line.code.split("Algorithm::").skip(1).any(is_variant))
}

#[test]
fn a_line_is_told_by_what_it_names() {
    assert!(names_kind("Store::Redis(redis) => redis,") && !names_kind("Store::RedisLike") && !names_kind("Redis"));
    assert!(is_deciding("async fn decide_later(&self)") && is_deciding("fn admit<T>()"));
    assert!(!is_deciding("fn decided(&self)") && !is_deciding("self.decide()"));
    assert!(is_cfg("#[cfg(unix)]") && is_cfg("if cfg!(unix) {") && !is_cfg("cfg(unix)"));
}

#[test]
fn only_what_a_function_takes_counts_not_what_it_returns() {
    let text = "pub fn a(\n    store: &Redis,\n) {}\nfn b() -> Redis {\n    of(Redis)\n}\nfn c(redis: Other) {}\n";
    let file = SourceFile { path: String::new(), module: Vec::new(), lines: crate::source::lines(text) };
    assert_eq!(taking_redis(&file), 1);
}
