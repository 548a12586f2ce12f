//! The compile time of the attribute.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::compiler::CompilerCounter;
use crate::duel::Duel;
use crate::figure::Figure;

const FUNCTIONS: usize = 200;
const ROUNDS: usize = 5;
const CLEAN_ROUNDS: usize = 2;

const WITHOUT: &str = "without the attribute";
const FIXED: &str = "syn, quote and proc-macro2 alone";

pub(crate) fn figures(folder: &Path) -> Vec<Figure> {
    let folder = folder.join("compile");
    let tallygate = format!("tallygate = {{ path = '{}' }}", member("runtime").display());
    let limited = Package::write(&folder, "limited", &tallygate, &source(Some(ATTRIBUTE)));
    let plain = Package::write(&folder, "plain", &tallygate, &source(None));
    let attribute = format!("tallygate-macros = {{ path = '{}' }}", member("macros").display());
    let attribute = Package::write(&folder, "attribute", &attribute, "");
    let fixed = Package::write(&folder, "fixed", &fixed_dependencies(), "");
    let checked = checked(&limited, &plain, &folder);
    let release = Duel::of(ROUNDS, || limited.seconds("build --release"), || plain.seconds("build --release"));
    let clean = Duel::of(CLEAN_ROUNDS, || attribute.clean_build_seconds(), || fixed.clean_build_seconds());
    let crates = Duel::once(|| attribute.dependencies(), || fixed.dependencies());
    vec![
        checked,
        Figure::ratio("200 limited functions, `cargo build --release`", "s", WITHOUT, &release),
        Figure::ratio("the attribute and all it needs, clean build", "s", FIXED, &clean),
        Figure::difference("— the same", "crates", FIXED, &crates),
        service(&folder),
        added(&folder),
    ]
}

/// What a service with most features of the library takes to build, beside the same service without it.
fn added(folder: &Path) -> Figure {
    let features = "features = ['admin', 'axum', 'config', 'cron', 'metrics', 'tonic', 'utoipa']";
    let tallygate = format!("tallygate = {{ path = '{}', {features} }}", member("runtime").display());
    let build = |name: &str, more: &str| {
        let package = Package::write(folder, name, &format!("{SERVICE}\n{more}"), "");
        write(&package.folder.join("src/lib.rs"), &package.source);
        build_processor_seconds(&package.folder, "--lib", &package.target())
    };
    let redis = "redis = { version = '1.8', default-features = false, features = ['tokio-comp', 'script'] }";
    let duel = Duel::once(|| build("with", &tallygate), || build("without", redis));
    let what = "a service with axum, tonic, config, cron, metrics and OpenAPI, clean debug build";
    Figure::difference(what, "s of all processors", "it with the crate redis alone", &duel)
}

const SERVICE: &str = "\
axum = '0.8'
metrics-exporter-prometheus = { version = '0.18', default-features = false }
serde = { version = '1', features = ['derive'] }
serde_json = '1'
tokio = { version = '1', features = ['macros', 'net', 'rt-multi-thread', 'signal', 'time'] }
tonic = '0.14'
tracing-subscriber = '0.3'
utoipa = { version = '6', default-features = false, features = ['macros'] }";

/// A small service beside the one with which axum's documentation begins, each built from nothing.
fn service(folder: &Path) -> Figure {
    let example =
        || build_processor_seconds(&member("."), "-p axum-example --no-default-features", &folder.join("axum"));
    let axum = "axum = '0.8'\ntokio = { version = '1', features = ['full'] }";
    let hello = Package::write(folder, "hello", axum, "");
    write(&hello.folder.join("src/main.rs"), HELLO);
    write(&hello.folder.join("src/lib.rs"), "");
    let hello = || build_processor_seconds(&hello.folder, "--bin hello", &hello.target());
    let duel = Duel::of(CLEAN_ROUNDS, example, hello);
    let what = "`examples/web/axum` without Redis, clean build";
    Figure::ratio(what, "s of all processors", "the hello world of axum", &duel).at_most(2.0)
}

/// Builds from nothing, and returns the processor time of all compilers, as a build uses all cores.
fn build_processor_seconds(workspace: &Path, what: &str, target: &Path) -> f64 {
    if target.exists() {
        fs::remove_dir_all(target).expect("what was built can be removed");
    }
    let before = children_seconds();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet"]).args(what.split(' ')).current_dir(workspace);
    let status = cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", target).status();
    assert!(status.expect("cargo can be started").success(), "cargo build {what}");
    children_seconds() - before
}

fn children_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts");
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

const HELLO: &str = r#"
use axum::{Router, response::Html, routing::get};

#[tokio::main]
async fn main() {
    let app = Router::new().route("/", get(handler));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap();
}

async fn handler() -> Html<&'static str> {
    Html("<h1>Hello, World!</h1>")
}
"#;

/// In instructions, because times vary.
fn checked(limited: &Package, plain: &Package, folder: &Path) -> Figure {
    const WHAT: &str = "200 limited functions, `cargo check`";
    let counter = match CompilerCounter::find(folder) {
        Ok(counter) => counter,
        Err(why) => return Figure::skipped(WHAT, WITHOUT, &why),
    };
    // Their dependencies are compiled before.
    for package in [limited, plain] {
        package.seconds("check");
    }
    let duel = Duel::once(|| limited.check_instructions(&counter), || plain.check_instructions(&counter));
    Figure::ratio(WHAT, "G instructions", WITHOUT, &duel).at_most(1.3)
}

/// A crate of the workspace.
fn member(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// The lines in the manifest of the attribute that every attribute needs.
fn fixed_dependencies() -> String {
    let workspace = read(&member("Cargo.toml"));
    let fixed = ["proc-macro2 =", "quote =", "syn ="];
    let lines = workspace.lines().filter(|line| fixed.iter().any(|name| line.starts_with(name)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A crate that is written to be compiled.
struct Package {
    folder: PathBuf,
    source: String,
}

impl Package {
    fn write(parent: &Path, name: &str, dependencies: &str, source: &str) -> Self {
        let folder = parent.join(name);
        fs::create_dir_all(folder.join("src")).expect("a folder for a package");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{dependencies}\n\n[workspace]\n"
        );
        write(&folder.join("Cargo.toml"), &manifest);
        // Dependencies have the versions of the workspace.
        write(&folder.join("Cargo.lock"), &read(&member("Cargo.lock")));
        Self { folder, source: source.to_owned() }
    }

    /// Compiles the crate again, and those dependencies that are not compiled yet.
    fn seconds(&self, command: &str) -> f64 {
        write(&self.folder.join("src/lib.rs"), &self.source);
        self.cargo(command, None).0
    }

    /// Checks the crate again, and returns the instructions of the compiler, in thousand millions.
    fn check_instructions(&self, counter: &CompilerCounter) -> f64 {
        write(&self.folder.join("src/lib.rs"), &self.source);
        let wrapper = counter.wrapper().expect("a script can be written");
        self.cargo("check", Some(&wrapper));
        counter.counted().expect("the counts can be read") / 1e9
    }

    fn clean_build_seconds(&self) -> f64 {
        let target = self.target();
        if target.exists() {
            fs::remove_dir_all(&target).expect("what was built can be removed");
        }
        self.seconds("build")
    }

    /// Counts the crates that are built for this one.
    fn dependencies(&self) -> f64 {
        let tree = self.cargo("tree -e normal,build --prefix none --no-dedupe --format {p}", None).1;
        let mut crates: Vec<_> = tree.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
        crates.sort_unstable();
        crates.dedup();
        crates.len() as f64
    }

    /// Returns the duration and the output.
    fn cargo(&self, command: &str, compiler_wrapper: Option<&Path>) -> (f64, String) {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(command.split(' ')).args(["--quiet", "--offline"]).current_dir(&self.folder);
        cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", self.target());
        if let Some(wrapper) = compiler_wrapper {
            cargo.env("RUSTC_WRAPPER", wrapper);
        }
        let started = Instant::now();
        let output = cargo.output().expect("cargo can be started");
        let seconds = started.elapsed().as_secs_f64();
        assert!(output.status.success(), "cargo {command}: {}", String::from_utf8_lossy(&output.stderr));
        (seconds, String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

const HEAD: &str = "\
#![allow(unused_imports)]

use std::collections::BTreeMap;

use tallygate::{Rejection, rate_limit};

pub struct Account {
    pub id: u64,
    pub tenant: String,
    pub entries: BTreeMap<String, u64>,
}
";

const ATTRIBUTE: &str = r#"
#[rate_limit(key = "{account.tenant}:{account.id}", rule(count = 10, per = "60s"), rule(count = 100, per = "1h"))]"#;

/// Functions similar to small handlers.
fn source(attribute: Option<&str>) -> String {
    let functions = (0..FUNCTIONS).map(|number| function(number, attribute.unwrap_or_default()));
    HEAD.to_owned() + &functions.collect::<String>()
}

fn function(number: usize, attribute: &str) -> String {
    format!(
        r#"{attribute}
pub async fn handle_{number}(account: &mut Account, lines: Vec<String>) -> Result<Vec<String>, Rejection> {{
    let mut answers = Vec::with_capacity(lines.len());
    for line in lines {{
        let Some((name, amount)) = line.split_once('=') else {{
            answers.push(format!("{{line}}: no amount"));
            continue;
        }};
        match amount.trim().parse::<u64>() {{
            Ok(amount) => {{
                let entry = account.entries.entry(name.trim().to_owned()).or_default();
                *entry = entry.saturating_add(amount + {number});
                answers.push(format!("{{name}}: {{entry}}"));
            }}
            Err(mistake) => answers.push(format!("{{name}}: {{mistake}}")),
        }}
        std::future::ready(()).await;
    }}
    answers.sort();
    Ok(answers)
}}
"#
    )
}
