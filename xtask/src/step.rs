//! One step of a task: a command that is announced before it runs and timed after it. A task ends with a list of its steps.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

/// How a task ends: with nothing to say, or with what went wrong and the remedy.
pub(crate) type Outcome = Result<(), String>;

/// The steps so far: the title and the time of each, or nothing where it was skipped.
static STEPS: Mutex<Vec<(String, Option<Duration>)>> = Mutex::new(Vec::new());

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let xtask = Path::new(&xtask);
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Returns the folder of what is built, which git ignores.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns the text of a file of the workspace.
pub(crate) fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(root().join(file)).map_err(|error| format!("cannot read {file}: {error}"))
}

/// Finds a program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Where packages put it, should the PATH be an unusual one.
    let usual = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    env::split_paths(&path).chain(usual).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// What cargo tells a program about its own package. The build scripts of some packages are run again where it differs.
const OF_THIS_PROGRAM: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Returns a command of the cargo that runs this program, written as in a shell. It is as one from a shell, so that whatever
/// builds next to it builds nothing twice.
pub(crate) fn cargo(words: &str) -> Command {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = as_from_a_shell(&cargo);
    command.args(words.split_whitespace()).current_dir(root());
    command
}

/// Returns a command that knows no more than one from a shell.
pub(crate) fn as_from_a_shell(program: &str) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in env::vars_os() {
        if OF_THIS_PROGRAM.iter().any(|prefix| variable.to_string_lossy().starts_with(prefix)) {
            command.env_remove(variable);
        }
    }
    command
}

/// Returns a command of cargo with flags for the compiler. It builds into a folder of its own, as all that is built depends on
/// the flags.
pub(crate) fn cargo_with_flags(words: &str, flags: &str, folder: &str) -> Command {
    let mut command = cargo(words);
    command.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", target().join(folder));
    command
}

/// Prints what is about to happen.
pub(crate) fn announce(title: &str) {
    println!("\n=== {title}");
}

/// Runs a command under a heading, and prints how long it took.
pub(crate) fn run(title: &str, command: &mut Command) -> Outcome {
    timed(title, || {
        println!("    {}", words(command));
        let ended = command.status().map_err(|error| format!("cannot run `{}`: {error}", words(command)))?;
        if ended.success() { Ok(()) } else { Err(format!("failed: {title} ({ended}); again by: {}", words(command))) }
    })
}

/// Runs a step that is no single command under a heading, and prints how long it took.
pub(crate) fn timed(title: &str, step: impl FnOnce() -> Outcome) -> Outcome {
    announce(title);
    let started = Instant::now();
    let outcome = step();
    let took = started.elapsed();
    println!("=== {title}: {:.1} s", took.as_secs_f64());
    record(title, Some(took));
    outcome
}

/// Runs a command beside another step. What it prints is shown at its end, under a heading of its own.
pub(crate) fn run_beside(title: &str, mut command: Command, other: impl FnOnce() -> Outcome) -> Outcome {
    let words = words(&command);
    thread::scope(|scope| {
        let started = Instant::now();
        let beside = scope.spawn(move || (command.output(), started.elapsed()));
        let other = other();
        announce(title);
        println!("    {words}");
        let (output, took) = beside.join().map_err(|_| format!("cannot wait for `{words}`"))?;
        let output = output.map_err(|error| format!("cannot run `{words}`: {error}"))?;
        println!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        println!("=== {title}: {:.1} s", took.as_secs_f64());
        record(title, Some(took));
        let passed = if output.status.success() { Ok(()) } else { Err(format!("failed: {title}; again by: {words}")) };
        other.and(passed)
    })
}

/// Prints that a step cannot run here, and why. The list of steps shows it, too.
pub(crate) fn skip(title: &str, reason: &str) {
    announce(&format!("{title}: skipped, as {reason}"));
    record(title, None);
}

/// Prints all steps with their times, and the time since the start of the task.
pub(crate) fn print_all(started: Instant) {
    let steps = STEPS.lock().unwrap_or_else(PoisonError::into_inner);
    if steps.is_empty() {
        return;
    }
    println!("\n=== all steps");
    for (title, time) in steps.iter() {
        match time {
            Some(time) => println!("{:>8.1} s  {title}", time.as_secs_f64()),
            None => println!(" skipped    {title}"),
        }
    }
    println!("{:>8.1} s  in total", started.elapsed().as_secs_f64());
}

fn record(title: &str, time: Option<Duration>) {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push((title.to_owned(), time));
}

/// Returns what a command prints.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run `{}`: {error}", words(command)))?;
    if !output.status.success() {
        return Err(format!("`{}` failed: {}", words(command), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a command as one would type it.
fn words(command: &Command) -> String {
    let settings = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_string_lossy(), value?.to_string_lossy())));
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = [program].into_iter().chain(command.get_args()).map(|word| word.to_string_lossy().into_owned());
    settings.chain(words).collect::<Vec<_>>().join(" ")
}
