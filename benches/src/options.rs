//! The measurements that the command line chooses.

use std::path::PathBuf;

use crate::recorded::Recorded;

/// A group of measurements.
#[cfg(feature = "web")]
pub(crate) const GROUPS: [&str; 1] = ["web"];

/// All groups, in the order of the report.
#[cfg(not(feature = "web"))]
pub(crate) const GROUPS: [&str; 21] = [
    "instructions",
    "throughput",
    "latency",
    "server-time",
    "weight",
    "tokens",
    "units",
    "leases",
    "topologies",
    "bounds",
    "storage",
    "remembered",
    "outage",
    "prefetch",
    "decision",
    "attribute",
    "subjects",
    "floods",
    "threads",
    "windows",
    "compile",
];

/// The option that names the module of redis-cell.
const REDIS_CELL: &str = "--redis-cell";

/// The option that names a file with recorded figures.
const AGAINST: &str = "--against";

/// The chosen measurements, and their tools.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// All groups, if it is empty.
    groups: Vec<String>,
    /// The module of redis-cell, which is not packaged.
    pub(crate) redis_cell: Option<PathBuf>,
    /// The recorded figures.
    pub(crate) against: Option<Recorded>,
}

impl Options {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            if word == REDIS_CELL {
                let path = words.next().ok_or_else(|| format!("`{REDIS_CELL}` needs the path of the module"))?;
                options.redis_cell = Some(path.into());
            } else if word == AGAINST {
                let path = words.next().ok_or_else(|| format!("`{AGAINST}` needs the path of a file"))?;
                options.against = Some(Recorded::read(path.as_ref())?);
            } else if GROUPS.contains(&word.as_str()) {
                options.groups.push(word);
            } else {
                return Err(format!(
                    "unknown group `{word}`; there are {}, `{REDIS_CELL} <path>` and `{AGAINST} <path>`",
                    GROUPS.join(", ")
                ));
            }
        }
        Ok(options)
    }

    pub(crate) fn has(&self, group: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|chosen| chosen == group)
    }
}
