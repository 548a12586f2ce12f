//! The commands that a server has logged.

use std::borrow::Cow;

use crate::server::Server;

/// An entry of the slow log: number, time, microseconds, words, address and name of the client.
type Entry = (u64, u64, u64, Vec<Vec<u8>>, String, String);

/// One run of a command.
pub struct Run {
    words: Vec<Vec<u8>>,
}

impl Run {
    /// Returns a word of the command, as a number.
    ///
    /// # Panics
    ///
    /// The word is not a number.
    #[must_use]
    pub fn number(&self, word: usize) -> u64 {
        self.word(word).and_then(|word| word.parse().ok()).expect("a number")
    }

    /// Returns a word of the command, or `None` if it has fewer words.
    #[must_use]
    pub fn word(&self, word: usize) -> Option<Cow<'_, str>> {
        self.words.get(word).map(|word| String::from_utf8_lossy(word))
    }
}

/// Makes a server log every command, however short.
pub fn note_all(server: &Server) {
    server.ask::<()>("CONFIG SET slowlog-max-len 1000000");
    server.ask::<()>("CONFIG SET slowlog-log-slower-than 0");
    server.ask::<()>("SLOWLOG RESET");
}

/// Returns the logged runs of a command.
#[must_use]
pub fn runs_of(server: &Server, command: &str) -> Vec<Run> {
    let log: Vec<Entry> = server.ask("SLOWLOG GET 1000000");
    let runs = log.into_iter().map(|(_, _, _, words, ..)| Run { words });
    runs.filter(|run| run.words[0].eq_ignore_ascii_case(command.as_bytes())).collect()
}
