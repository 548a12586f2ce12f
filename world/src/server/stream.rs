//! What a primary tells its replicas: the writes, in their order.

use std::mem;

use super::arguments::Arguments;

/// Writes that replicas have not been told of yet.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Whether there is any replica.
    pub(crate) is_wanted: bool,
    /// All that the running command writes.
    batch: Vec<u8>,
    selected: Option<usize>,
    batches: Vec<Write>,
    /// How many bytes there were, as `INFO` says.
    pub(crate) offset: u64,
}

/// What one command or one script has written: a replica has all of it or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write(pub(crate) Vec<u8>);

impl Stream {
    /// Records a write of the running command.
    pub(crate) fn record(&mut self, database: usize, command: &Arguments) {
        if !self.is_wanted {
            return;
        }
        if self.selected != Some(database) {
            self.selected = Some(database);
            Arguments::of([b"SELECT", database.to_string().as_bytes()]).encode(&mut self.batch);
        }
        command.encode(&mut self.batch);
    }

    /// Ends what the running command writes.
    pub(crate) fn seal(&mut self) {
        if !self.batch.is_empty() {
            self.offset += self.batch.len() as u64;
            self.batches.push(Write(mem::take(&mut self.batch)));
            // Each write says its database, as a replica may begin with any of them.
            self.selected = None;
        }
    }

    /// Returns all since the last time.
    pub(crate) fn take(&mut self) -> Vec<Write> {
        mem::take(&mut self.batches)
    }
}
