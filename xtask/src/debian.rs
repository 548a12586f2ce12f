//! Packages of Debian and its derivatives, installed as root or by `sudo`.

use std::path::Path;
use std::process::Command;

use crate::step::{self, Outcome, find};

/// Installs a package.
pub(crate) fn install(package: &str) -> Outcome {
    let (Some(apt), true) = (find("apt-get"), Path::new("/etc/debian_version").exists()) else {
        return Err("this system has no packages of Debian".to_owned());
    };
    let root = is_root()?;
    let command = |words: &[&str]| {
        let mut command = Command::new(if root { "env" } else { "sudo" });
        command.args((!root).then_some("env")).arg("DEBIAN_FRONTEND=noninteractive").arg(&apt).args(words);
        command
    };
    step::run("update the list of packages", &mut command(&["update"]))?;
    let install = ["install", "--yes", "--no-install-recommends", package];
    step::run(&format!("install {package}"), &mut command(&install))
}

fn is_root() -> Result<bool, String> {
    Ok(step::output(Command::new("id").arg("-u"))?.trim() == "0")
}
