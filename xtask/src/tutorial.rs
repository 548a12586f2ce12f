//! Runs `docs/tutorial.md` as its reader does, from an empty folder: types its commands and its files into a shell, and
//! compares what is printed with what the page shows.

mod input;
mod shell;
mod shown;

use std::path::Path;
use std::{env, fs, process};

use self::input::{Input, Mistake};
use self::shell::Shell;
use crate::server::Server;
use crate::step::{self, Outcome};
use crate::{install, server};

const PAGE: &str = "docs/tutorial.md";

/// Where the repository lies for a reader of the page. That is the only text of the page that is replaced.
const REPOSITORY: &str = "/path/to/tallygate";

/// What was built of the page's own package is of no use to later runs, whose folders have other names.
const CLEAN: &str = "cargo clean --package \"$(cargo pkgid)\" 2>/dev/null";

pub(crate) fn run() -> Outcome {
    step::announce("what the page needs");
    install::program("curl", "curl")?;
    let server = Server::usual()?;
    let page = step::read(PAGE)?.replace(REPOSITORY, &step::root().display().to_string());
    let inputs = input::read(&page).map_err(at_line)?;
    step::timed(PAGE, || {
        let folder = env::temp_dir().join(format!("tallygate-tutorial-{}", process::id()));
        let outcome = begin(&folder, &server).and_then(|mut shell| {
            let played = play(&inputs, &folder, &mut shell);
            let cleaned = shell.prepare(CLEAN);
            played.and(cleaned)
        });
        // Where it cannot be removed, it stays in the folder of temporary files.
        let _ = fs::remove_dir_all(&folder);
        outcome
    })
}

/// Starts a shell in a new folder. It finds the server and what the page installs, and builds where all else is built.
fn begin(folder: &Path, server: &Server) -> Result<Shell, String> {
    fs::create_dir(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder.join("bin")].into_iter().chain(env::split_paths(&path)));
    let mut bash = step::as_from_a_shell("bash");
    bash.current_dir(folder).env("PATH", path.map_err(|error| format!("the PATH cannot be set: {error}"))?);
    bash.env("CARGO_INSTALL_ROOT", folder).env("CARGO_TARGET_DIR", step::target());
    // As the workspace builds its dependencies.
    bash.env("CARGO_PROFILE_DEV_DEBUG", "0");
    // The command line waits for a busy machine.
    bash.env("TALLYGATE_TIMEOUT", "30s").env("LC_ALL", "C");
    let mut shell = Shell::start(bash, folder)?;
    shell.prepare(&format!("hash -p {} {}", shell::quoted(&server.binary.display().to_string()), server::BINARY))?;
    Ok(shell)
}

fn play(inputs: &[Input], folder: &Path, shell: &mut Shell) -> Outcome {
    inputs.iter().try_for_each(|input| {
        println!("{PAGE}:{}: {}", input.line, input.title);
        lock(folder)?;
        shell.play(input).map_err(at_line)
    })
}

/// Gives new packages the versions of this workspace: what cargo adds to them is no later than what is tested.
fn lock(folder: &Path) -> Outcome {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for package in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.join("Cargo.toml").is_file())
    {
        fs::write(package.join("Cargo.lock"), step::read("Cargo.lock")?)
            .map_err(|error| format!("cannot write to {}: {error}", package.display()))?;
    }
    Ok(())
}

fn at_line((line, mistake): Mistake) -> String {
    format!("{PAGE}:{line}: {mistake}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_can_be_read_and_says_where_the_repository_lies() {
        let inputs = input::read(&step::read(PAGE).unwrap()).unwrap();
        assert!(inputs.iter().any(|input| input.words.contains(REPOSITORY)));
        assert!(inputs.len() > 20, "{}", inputs.len());
    }
}
