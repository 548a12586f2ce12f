//! The tally of a subject, looked at as an operator would: with Redis's own commands.

use redis::{Connection, FromRedisValue};

use crate::server::{Server, ask, key_of};

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

    /// Returns the milliseconds until the tally expires, or -1 when it does not.
    pub fn ttl_ms(&mut self) -> i64 {
        self.ask("PTTL")
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
