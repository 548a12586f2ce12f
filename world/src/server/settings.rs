//! What `CONFIG` knows.

use std::collections::BTreeMap;

/// The settings with their values, by name.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    texts: BTreeMap<&'static str, String>,
    /// The most bytes of memory; 0 for any.
    pub(crate) most_memory: u64,
    /// Below so many replicas, nothing may be written.
    pub(crate) least_replicas: u64,
    /// Whether a replica answers without its primary.
    pub(crate) serves_stale: bool,
    pub(crate) may_replicas_write: bool,
}

const DEFAULTS: [(&str, &str); 16] = [
    ("appendonly", "no"),
    ("cluster-node-timeout", "15000"),
    ("cluster-require-full-coverage", "yes"),
    ("lua-time-limit", "5000"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("min-replicas-max-lag", "10"),
    ("min-replicas-to-write", "0"),
    ("notify-keyspace-events", ""),
    ("replica-read-only", "yes"),
    ("replica-serve-stale-data", "yes"),
    ("requirepass", ""),
    ("save", ""),
    ("stop-writes-on-bgsave-error", "yes"),
    ("timeout", "0"),
];

impl Default for Settings {
    fn default() -> Self {
        Self {
            texts: DEFAULTS.into_iter().map(|(name, text)| (name, text.to_owned())).collect(),
            most_memory: 0,
            least_replicas: 0,
            serves_stale: true,
            may_replicas_write: false,
        }
    }
}

impl Settings {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.texts.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (*name, text.as_str()))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name)
    }

    /// Changes a setting that there is; returns what is wrong with the text.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), &'static str> {
        match name {
            "maxmemory" => self.most_memory = memory(text).ok_or("argument must be a memory value")?,
            "min-replicas-to-write" => {
                self.least_replicas = text.parse().map_err(|_| "argument couldn't be parsed into an integer")?;
            }
            "replica-serve-stale-data" => self.serves_stale = yes_or_no(text)?,
            "replica-read-only" => self.may_replicas_write = !yes_or_no(text)?,
            _ => {}
        }
        let text = if name == "maxmemory" { self.most_memory.to_string() } else { text.to_owned() };
        if let Some(known) = self.texts.get_mut(name) {
            *known = text;
        }
        Ok(())
    }
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'"),
    }
}

/// Reads bytes with a unit, like `100mb`.
fn memory(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let units = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("k", 1_000), ("m", 1_000_000), ("b", 1), ("", 1)];
    let (number, unit) = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))?;
    number.parse::<u64>().ok()?.checked_mul(*unit)
}
