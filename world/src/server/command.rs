//! What is known of a command before it runs.

use std::ops::Range;

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::numbers::integer;
use super::refusal::{Answer, Refusal};
use super::session::Session;
use super::state::State;
use super::user::Access;

/// A command.
#[derive(Clone, Copy)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The number of its words, or the least one, if negative.
    pub(crate) arity: i8,
    pub(crate) run: Run,
    pub(crate) keys: Keys,
    pub(crate) traits: u16,
    /// Where users find it.
    pub(crate) category: &'static str,
    pub(crate) subcommands: &'static [Subcommand],
}

/// A command that is a part of another one.
pub(crate) struct Subcommand {
    pub(crate) name: &'static str,
    pub(crate) arity: i8,
    /// The first server that has it.
    pub(crate) since: Flavour,
}

/// It changes keys.
pub(crate) const WRITES: u16 = 1;
/// It may need more memory.
pub(crate) const GROWS: u16 = 1 << 1;
/// A script may not call it.
pub(crate) const NOT_IN_SCRIPTS: u16 = 1 << 2;
/// A replica without its primary answers it.
pub(crate) const WHILE_STALE: u16 = 1 << 3;
/// A server that loads answers it.
pub(crate) const WHILE_LOADING: u16 = 1 << 4;
/// It needs no login.
pub(crate) const BEFORE_LOGIN: u16 = 1 << 5;
/// A server answers it while a script runs for too long.
pub(crate) const WHILE_BUSY: u16 = 1 << 6;
/// A client that listens to channels may send it.
pub(crate) const WHILE_LISTENING: u16 = 1 << 7;
/// Sentinels know it.
pub(crate) const OF_SENTINELS: u16 = 1 << 8;
/// It is for those who run the server.
pub(crate) const ADMINISTERS: u16 = 1 << 9;
/// Nothing but sentinels knows it.
pub(crate) const OF_SENTINELS_ALONE: u16 = 1 << 10;
/// It uses channels.
pub(crate) const USES_CHANNELS: u16 = 1 << 11;

/// Which words of a command are keys.
#[derive(Clone, Copy)]
pub(crate) enum Keys {
    None,
    /// The first argument.
    First(Access),
    /// All arguments.
    All(Access),
    /// As many as the second argument says.
    Counted(Access),
}

/// What runs a command.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// It needs nothing but the keys, so scripts may call it.
    Data(fn(&mut State, &Arguments) -> Answer),
    /// It is about the client.
    Client(fn(&mut State, &mut Session, &Arguments) -> Answer),
    /// It is about scripts.
    Script(ScriptCommand),
    /// It is about users and commands.
    Users,
}

/// The commands about scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptCommand {
    Eval,
    EvalSha,
    Script,
}

impl Command {
    pub(crate) fn has(&self, traits: u16) -> bool {
        self.traits & traits != 0
    }

    /// Whether a command of so many words is complete.
    pub(crate) fn takes(&self, words: usize) -> bool {
        fits(self.arity, words)
    }

    /// The places of its keys, and how it uses them.
    pub(crate) fn keys(&self, arguments: &Arguments) -> (Range<usize>, Access) {
        match self.keys {
            Keys::None => (0..0, Access::ABOUT),
            Keys::First(access) => (1..2, access),
            Keys::All(access) => (1..arguments.len(), access),
            Keys::Counted(access) => {
                let number = integer(arguments.word(2)).and_then(|number| usize::try_from(number).ok());
                let end = number.map_or(3, |number| number.saturating_add(3)).min(arguments.len());
                (3..end.max(3), access)
            }
        }
    }

    /// Whether users find it in that category.
    pub(crate) fn is_in(&self, category: &str) -> bool {
        match category {
            "write" => self.has(WRITES),
            "read" => !self.has(WRITES) && matches!(self.keys, Keys::First(_) | Keys::All(_)),
            "admin" | "dangerous" => self.has(ADMINISTERS),
            category => category == self.category,
        }
    }

    /// Finds out whether the command has such a subcommand.
    pub(crate) fn check_subcommand(&self, flavour: Flavour, arguments: &Arguments) -> Result<(), Refusal> {
        if self.subcommands.is_empty() || arguments.len() < 2 {
            return Ok(());
        }
        let mut known = self.subcommands.iter().filter(|known| arguments.is(1, known.name) && known.since <= flavour);
        if known.clone().any(|known| fits(known.arity, arguments.len())) {
            return Ok(());
        }
        match known.next() {
            Some(known) if flavour > Flavour::Redis62 => Err(Refusal::arity(&format!("{}|{}", self.name, known.name))),
            _ => Err(Refusal::unknown_subcommand(flavour, self.name, arguments)),
        }
    }

    /// The name with that of the subcommand, as newer servers say it.
    pub(crate) fn full_name(&self, arguments: &Arguments) -> String {
        let known = self.subcommands.iter().find(|known| arguments.is(1, known.name));
        known.map_or_else(|| self.name.to_owned(), |known| format!("{}|{}", self.name, known.name))
    }
}

fn fits(arity: i8, words: usize) -> bool {
    let least = usize::from(arity.unsigned_abs());
    if arity < 0 { words >= least } else { words == least }
}
