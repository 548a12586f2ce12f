//! A file with a mistake, and the text that is expected for it.

use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/ui");

pub(super) struct Case {
    file: PathBuf,
    text: String,
}

/// Returns the cases of a folder in the order of their names, without those for a feature that is off.
pub(super) fn all(folder: &str) -> Vec<Case> {
    let entries = fs::read_dir(Path::new(FOLDER).join(folder)).expect("the folder of cases can be read");
    let files = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut cases: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "rs")).map(read).collect();
    cases.retain(|case| cfg!(feature = "cron") || !case.text.contains("cron = "));
    cases.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(!cases.is_empty(), "{folder} has no cases");
    cases
}

fn read(file: PathBuf) -> Case {
    let text = fs::read_to_string(&file).expect("a case can be read");
    Case { file, text }
}

impl Case {
    /// Returns the path as the compiler shows it, with the place of `tests` left out.
    pub(super) fn path(&self) -> String {
        let path = self.file.strip_prefix(FOLDER).expect("a case is in the folder of cases");
        format!("ui/{}", path.display())
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the file of the expected text.
    pub(super) fn expectation(&self) -> PathBuf {
        self.file.with_extension("stderr")
    }

    /// Returns the expected text, which is empty for a new case.
    pub(super) fn expected(&self) -> String {
        fs::read_to_string(self.expectation()).unwrap_or_default()
    }
}
