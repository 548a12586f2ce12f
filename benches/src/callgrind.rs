//! A server whose instructions are counted, by callgrind.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{fs, io};

use tempfile::TempDir;

use crate::server::{Server, binary};

/// The server's function for a script call.
const COUNTED: &str = "evalShaCommand";

/// A command that no limiter sends. Before each of them, the count is written to a file and starts again.
const MARK: &str = "echoCommand";

/// A server that counts the instructions of script calls.
pub(crate) struct CountingServer {
    server: Server,
    folder: TempDir,
    marks: Cell<usize>,
}

impl CountingServer {
    /// Starts one. Without valgrind, this is an error.
    pub(crate) fn start() -> Result<Self, String> {
        let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
        version.map_err(|error: io::Error| format!("skipped: no valgrind ({error})"))?;
        let folder = tempfile::tempdir().map_err(|error| format!("skipped: no folder ({error})"))?;
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--tool=callgrind"]);
        command.arg(format!("--toggle-collect={COUNTED}")).arg(format!("--dump-before={MARK}"));
        command.arg(format!("--callgrind-out-file={}", folder.path().join("counted").display())).arg(binary());
        Ok(Self { server: Server::launch(command, &[]), folder, marks: Cell::new(0) })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Counts the instructions of the script calls that this makes.
    pub(crate) fn count(&self, work: impl FnOnce()) -> f64 {
        self.mark();
        work();
        let path = self.mark();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("no {}: {error}", path.display()));
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("callgrind counts");
        total.parse().expect("a number")
    }

    /// Writes the count since the last mark, and returns the file.
    fn mark(&self) -> PathBuf {
        self.server.ask::<String>(&["ECHO", "mark"]);
        self.marks.set(self.marks.get() + 1);
        self.folder.path().join(format!("counted.{}", self.marks.get()))
    }
}
