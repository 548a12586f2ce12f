//! All that a server knows, apart from its clients and its scripts.

use std::collections::BTreeMap;

use super::arguments::Arguments;
use super::cluster::Cluster;
use super::flavour::Flavour;
use super::hash_value::HashValue;
use super::keyspace::{Entry, Keyspace, Value};
use super::refusal::{Refusal, WRONG_TYPE};
use super::settings::Settings;
use super::sorted_set::SortedSet;
use super::stream::Stream;
use super::user::Users;

/// How many databases there are.
pub(crate) const DATABASES: usize = 16;

/// What a server uses without any key.
const EMPTY_MEMORY: u64 = 1 << 20;
/// What a key uses beside its name and its value.
const KEY_MEMORY: usize = 64;

/// What a server knows.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) flavour: Flavour,
    /// The server's clock, in microseconds since 1970.
    pub(crate) time_us: u64,
    pub(crate) databases: Vec<Keyspace>,
    /// The database of the command that runs.
    pub(crate) selected: usize,
    pub(crate) settings: Settings,
    pub(crate) users: Users,
    pub(crate) role: Role,
    pub(crate) faults: Faults,
    /// Replicas that are close enough behind.
    pub(crate) good_replicas: u64,
    pub(crate) cluster: Option<Cluster>,
    /// What a sentinel knows: host and port of each primary, by name. Other servers are no sentinels.
    pub(crate) primaries: Option<BTreeMap<String, (String, u16)>>,
    pub(crate) stream: Stream,
    /// Messages to the subscribers of channels.
    pub(crate) published: Vec<(Vec<u8>, Vec<u8>)>,
    /// How many clients have subscribed, by channel.
    pub(crate) subscribers: BTreeMap<Vec<u8>, usize>,
    /// How many changes there were.
    pub(crate) changes: u64,
    /// The command that does to a replica what the last one did here, where it is another one.
    pub(crate) rewritten: Option<Arguments>,
    /// Whether a primary or a snapshot gives the commands: it decides what expires.
    pub(crate) obeys: bool,
    /// How many keys have expired.
    pub(crate) expired: u64,
}

/// What a server is to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It decides what is written.
    #[default]
    Primary,
    /// It follows a primary.
    Replica {
        /// The host of the primary.
        host: String,
        /// Its port.
        port: u16,
        /// Whether it is connected.
        is_connected: bool,
    },
}

/// What makes a server refuse commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each fault is one of its own")]
pub struct Faults {
    /// It reads a snapshot.
    pub is_loading: bool,
    /// A script has run for too long.
    pub is_busy: bool,
    /// The last snapshot failed.
    pub cannot_save: bool,
    /// It has more in memory than it may.
    pub is_full: bool,
}

impl State {
    pub(crate) fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            time_us: 0,
            databases: (0..DATABASES).map(|_| Keyspace::default()).collect(),
            selected: 0,
            settings: Settings::default(),
            users: Users::new(flavour),
            role: Role::Primary,
            faults: Faults::default(),
            good_replicas: 0,
            cluster: None,
            primaries: None,
            stream: Stream::default(),
            published: Vec::new(),
            subscribers: BTreeMap::new(),
            changes: 0,
            rewritten: None,
            obeys: false,
            expired: 0,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from(self.time_us / 1000).unwrap_or(i64::MAX)
    }

    pub(crate) fn is_replica(&self) -> bool {
        self.role != Role::Primary
    }

    pub(crate) fn keyspace(&mut self) -> &mut Keyspace {
        &mut self.databases[self.selected]
    }

    /// Returns what a key holds. A key that has expired is not there; a primary removes it.
    pub(crate) fn entry(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let now_ms = self.now_ms();
        let is_expired = !self.obeys && self.databases[self.selected].get(key)?.is_expired(now_ms);
        if is_expired {
            if !self.is_replica() {
                self.keyspace().remove(key);
                self.expired += 1;
                self.stream.record(self.selected, &Arguments::of([b"DEL", key]));
            }
            return None;
        }
        self.keyspace().get_mut(key)
    }

    pub(crate) fn text(&mut self, key: &[u8]) -> Result<Option<&mut Vec<u8>>, Refusal> {
        match self.entry(key).map(|entry| &mut entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    pub(crate) fn hash(&mut self, key: &[u8]) -> Result<Option<&mut HashValue>, Refusal> {
        match self.entry(key).map(|entry| &mut entry.value) {
            None => Ok(None),
            Some(Value::Hash(fields)) => Ok(Some(fields)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    pub(crate) fn sorted_set(&mut self, key: &[u8]) -> Result<Option<&mut SortedSet>, Refusal> {
        match self.entry(key).map(|entry| &mut entry.value) {
            None => Ok(None),
            Some(Value::SortedSet(set)) => Ok(Some(set)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    /// Lets a key hold another value.
    pub(crate) fn put(&mut self, key: &[u8], value: Value, expires_ms: Option<i64>) {
        self.keyspace().insert(key, Entry { value, expires_ms });
    }

    /// Returns whether the key was there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        self.entry(key).is_some() && self.keyspace().remove(key).is_some()
    }

    /// Notes that something has changed.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Sends replicas another command in place of the one that runs.
    pub(crate) fn rewrite(&mut self, command: impl FnOnce() -> Arguments) {
        if self.stream.is_wanted {
            self.rewritten = Some(command());
        }
    }

    /// About how many bytes of memory are used.
    pub(crate) fn used_memory(&self) -> u64 {
        let keys = self.databases.iter().flat_map(Keyspace::iter);
        let bytes: usize = keys.map(|(key, entry)| KEY_MEMORY + key.len() + entry.value.bytes()).sum();
        EMPTY_MEMORY.saturating_add(bytes.try_into().unwrap_or(u64::MAX))
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        let most = self.settings.most_memory;
        self.faults.is_full || most > 0 && (most < EMPTY_MEMORY || self.used_memory() > most)
    }

    pub(crate) fn has_too_few_replicas(&self) -> bool {
        !self.is_replica() && self.good_replicas < self.settings.least_replicas
    }

    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.role, Role::Replica { is_connected: false, .. }) && !self.settings.serves_stale
    }
}
