//! The instructions that the compiler takes, by `perf` or else by valgrind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Counts what the compiler does for one crate.
pub(crate) struct CompilerCounter {
    tool: Tool,
    /// Where the counts are written.
    folder: PathBuf,
}

#[derive(Clone, Copy)]
enum Tool {
    Perf,
    Valgrind,
}

impl CompilerCounter {
    /// Finds a tool that counts, or returns an error.
    pub(crate) fn find(folder: &Path) -> Result<Self, String> {
        let works = |tool: Tool| {
            let output = Command::new("sh").args(["-c", &format!("{} true", tool.command("/dev/stderr"))]).output();
            output.is_ok_and(|output| output.status.success() && tool.is_counted(&output.stderr))
        };
        let found = [Tool::Perf, Tool::Valgrind].into_iter().find(|&tool| works(tool));
        let tool = found.ok_or("skipped: neither `perf` nor valgrind counts instructions here")?;
        Ok(Self { tool, folder: folder.join("counts") })
    }

    /// Returns the wrapper for the compiler in the commands of cargo. It counts only the crate that is asked for.
    pub(crate) fn wrapper(&self) -> io::Result<PathBuf> {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("wrapper.sh");
        let counted = self.tool.command(&self.folder.join("count.$$").display().to_string());
        let text =
            format!("#!/bin/sh\nif [ -n \"$CARGO_PRIMARY_PACKAGE\" ]; then exec {counted} \"$@\"; fi\nexec \"$@\"\n");
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// Returns the instructions that were counted since the wrapper was made.
    pub(crate) fn counted(&self) -> io::Result<f64> {
        let mut counted = 0.0;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("count.")) {
                counted += self.tool.count(&fs::read_to_string(&path)?).unwrap_or_default();
            }
        }
        Ok(counted)
    }
}

impl Tool {
    fn command(self, file: &str) -> String {
        match self {
            Self::Perf => format!("perf stat -x, -e instructions:u -o {file} --"),
            Self::Valgrind => format!(
                "valgrind --quiet --tool=cachegrind --cache-sim=no --trace-children=yes --cachegrind-out-file={file}.%p"
            ),
        }
    }

    /// Returns whether this is the output of a tool that works.
    fn is_counted(self, printed: &[u8]) -> bool {
        match self {
            Self::Perf => self.count(&String::from_utf8_lossy(printed)).is_some(),
            Self::Valgrind => true,
        }
    }

    /// Reads a file of counts.
    fn count(self, text: &str) -> Option<f64> {
        match self {
            Self::Perf => text.lines().find(|line| line.contains("instructions"))?.split(',').next()?.parse().ok(),
            Self::Valgrind => text.lines().find_map(|line| line.strip_prefix("summary: "))?.parse().ok(),
        }
    }
}
