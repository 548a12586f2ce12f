//! What a server has noted of the commands that it has run.

use crate::server::Server;

/// An entry of the slow log: number, time, microseconds, words, address and name of the client.
type Entry = (u64, u64, u64, Vec<Vec<u8>>, String, String);

/// One run of a command.
pub struct Run {
    words: Vec<Vec<u8>>,
    microseconds: u64,
}

impl Run {
    /// Returns a word of the command, as a number.
    ///
    /// # Panics
    ///
    /// It is none.
    #[must_use]
    pub fn number(&self, word: usize) -> u64 {
        String::from_utf8_lossy(&self.words[word]).parse().expect("a number")
    }
}

/// Lets a server note each command, whatever time it takes.
pub fn note_all(server: &Server) {
    server.ask::<()>("CONFIG SET slowlog-max-len 1000000");
    server.ask::<()>("CONFIG SET slowlog-log-slower-than 0");
    server.ask::<()>("SLOWLOG RESET");
}

/// Returns the runs of a command that were noted.
#[must_use]
pub fn runs_of(server: &Server, command: &str) -> Vec<Run> {
    let log: Vec<Entry> = server.ask("SLOWLOG GET 1000000");
    let runs = log.into_iter().map(|(_, _, microseconds, words, ..)| Run { words, microseconds });
    runs.filter(|run| run.words[0].eq_ignore_ascii_case(command.as_bytes())).collect()
}

/// Returns the median of what runs took. On a machine that is shared, a single one may take any time.
///
/// # Panics
///
/// There are none.
#[must_use]
pub fn median_microseconds(runs: &[Run]) -> u64 {
    let mut all: Vec<_> = runs.iter().map(|run| run.microseconds).collect();
    all.sort_unstable();
    all[all.len() / 2]
}
