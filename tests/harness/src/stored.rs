//! The tally of a subject, looked at as an operator would: with Redis's own commands.

use redis::{Connection, FromRedisValue};
use tallygate_lua::{ENTRY_BYTES, INTEGER_BYTES};

use crate::server::{Server, ask, key_of, keys_of};

/// The tally of one subject of one policy, whatever its layout.
pub struct Stored {
    connection: Connection,
    policy: &'static str,
    subject: &'static str,
}

impl Stored {
    /// Looks at the tally of a subject that is to be counted on that server.
    #[must_use]
    pub fn on(server: &Server, policy: &'static str, subject: &'static str) -> Self {
        Self { connection: server.connection(), policy, subject }
    }

    /// Returns the bytes.
    pub fn bytes(&mut self) -> Vec<u8> {
        self.ask("GET")
    }

    /// Returns the milliseconds until the tally expires, -1 when it does not, or -2 when there is none any more.
    pub fn ttl_ms(&mut self) -> i64 {
        let keys = keys_of(&mut self.connection, self.policy, self.subject);
        keys.first().map_or(-2, |key| ask(&mut self.connection, &format!("PTTL {key}")))
    }

    /// Returns what changes with every byte, and when a TTL comes or goes, but not when it changes.
    pub fn digest(&mut self) -> String {
        self.ask::<Vec<String>>("DEBUG DIGEST-VALUE").concat()
    }

    /// Returns the memory that the server uses for the tally, in bytes.
    pub fn memory(&mut self) -> u64 {
        self.ask("MEMORY USAGE")
    }

    /// Takes the TTL away.
    pub fn persist(&mut self) {
        self.ask::<()>("PERSIST");
    }

    fn ask<T: FromRedisValue>(&mut self, command: &str) -> T {
        let key = key_of(&mut self.connection, self.policy, self.subject);
        ask(&mut self.connection, &format!("{command} {key}"))
    }
}

/// Returns the time and the weight of each call in the log of a tally that has nothing else.
///
/// # Panics
///
/// It is no such log.
#[must_use]
pub fn calls(log: &[u8]) -> Vec<(u64, u32)> {
    let (entries, rest) = log.as_chunks::<ENTRY_BYTES>();
    assert!(rest.is_empty(), "{log:?}");
    entries
        .windows(2)
        .map(|pair| (time(&pair[1]), surplus(&pair[1]).wrapping_sub(surplus(&pair[0])).wrapping_add(1)))
        .collect()
}

/// Returns the log of calls of weight 1 at these times, as it is stored.
#[must_use]
pub fn log(times_us: &[u64]) -> Vec<u8> {
    let entry = |time: &u64| [&time.to_be_bytes()[8 - INTEGER_BYTES..], &[0; ENTRY_BYTES - INTEGER_BYTES]].concat();
    std::iter::once(&0).chain(times_us).flat_map(entry).collect()
}

/// The first bit is no part of the time.
fn time(entry: &[u8; ENTRY_BYTES]) -> u64 {
    entry[..INTEGER_BYTES].iter().fold(0, |time, byte| time << 8 | u64::from(*byte)) & ((1 << 55) - 1)
}

fn surplus(entry: &[u8; ENTRY_BYTES]) -> u32 {
    entry[INTEGER_BYTES..].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}
