//! The server that the tests start: the one that is named, the one on the `PATH`, or one from the system's packages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, step};

/// Names the server binary to test against.
pub(crate) const VARIABLE: &str = "TALLYGATE_TEST_SERVER";

const BINARY: &str = "redis-server";

const REMEDY: &str = "\
the tests need Redis 6.2 or later, or Valkey: install it, so that `redis-server` is on the PATH, and try again
  Debian, Ubuntu   apt-get install redis-server
  Fedora           dnf install redis
  Arch             pacman -S redis
  macOS            brew install redis
  Windows          use the Windows Subsystem for Linux
or name a server binary in TALLYGATE_TEST_SERVER";

/// Finds or installs the server, and says which it is.
pub(crate) fn run() -> Outcome {
    let binary = find_or_install()?;
    let version = step::output(Command::new(&binary).arg("--version"))?;
    println!("{}: {}", binary.display(), version.trim());
    Ok(())
}

/// Returns the path of the server binary.
pub(crate) fn find_or_install() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        return if named.is_file() { Ok(named) } else { Err(format!("{VARIABLE} names no file: {}", named.display())) };
    }
    if let Some(found) = find(BINARY) {
        return Ok(found);
    }
    install()?;
    find(BINARY).ok_or_else(|| format!("installed, but `{BINARY}` is not on the PATH\n{REMEDY}"))
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Where packages put it, should the PATH be an unusual one.
    let usual = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    env::split_paths(&path).chain(usual).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Installs Debian's package, as root or by `sudo`.
fn install() -> Outcome {
    let (Some(apt), true) = (find("apt-get"), Path::new("/etc/debian_version").exists()) else {
        return Err(format!("`{BINARY}` is not on the PATH\n{REMEDY}"));
    };
    let apt = |words: &str| -> Result<Command, String> {
        let mut command = Command::new(if is_root()? { "env" } else { "sudo" });
        command.args((!is_root()?).then_some("env"));
        command.arg("DEBIAN_FRONTEND=noninteractive").arg(&apt).args(words.split_whitespace());
        Ok(command)
    };
    step::run("update the list of packages", &mut apt("update")?)?;
    step::run(
        "install the server that the tests start",
        &mut apt("install --yes --no-install-recommends redis-server")?,
    )
    .map_err(|mistake| format!("{mistake}\n{REMEDY}"))
}

fn is_root() -> Result<bool, String> {
    Ok(step::output(Command::new("id").arg("-u"))?.trim() == "0")
}
