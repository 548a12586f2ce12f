//! The dependencies: their licences, versions and sources, and the page that says what each is for.

use crate::install::{self, CARGO_DENY};
use crate::step::{self, Outcome, cargo, output};

const PAGE: &str = "docs/dependencies.md";

/// What users build: the runtime with all features, without what its own tests need.
const OF_USERS: &str = "--manifest-path runtime/Cargo.toml --all-features --exclude-dev";

/// Checks all dependencies by `deny.toml`, and that the page names those that users build.
pub(crate) fn run() -> Outcome {
    check_page()?;
    let deny = |words: &str| install::tool(CARGO_DENY, words);
    step::run("licences, duplicates and sources", &mut deny(&format!("{OF_USERS} check licenses bans sources"))?)?;
    step::run("licences and sources of the workspace", &mut deny("--workspace check licenses sources")?)?;
    advisories()
}

/// Asks the database of known vulnerabilities, a git repository, where it can be reached.
fn advisories() -> Outcome {
    const TITLE: &str = "advisories";
    match output(&mut install::tool(CARGO_DENY, "fetch db")?) {
        Ok(_) => step::run(TITLE, &mut install::tool(CARGO_DENY, "--workspace check --disable-fetch advisories")?),
        Err(mistake) => {
            let reason = mistake.trim().lines().last().unwrap_or_default();
            step::skip(TITLE, &format!("the database of advisories cannot be fetched ({reason})"));
            Ok(())
        }
    }
}

/// Looks up on the page every crate that users may build on Linux; other systems bring a few more.
fn check_page() -> Outcome {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    step::announce("the page of dependencies");
    let page = step::read(PAGE)?;
    let tree = output(&mut cargo("tree -p tallygate --all-features -e normal,build --prefix none --format {p}"))?;
    let crates = tree.lines().filter_map(|line| line.split_whitespace().next());
    match crates.filter(|name| !page.contains(&format!("`{name}`"))).min() {
        None => Ok(()),
        Some(name) => Err(format!("{PAGE} lacks `{name}`; remedy: say there what it is for, or remove it")),
    }
}
