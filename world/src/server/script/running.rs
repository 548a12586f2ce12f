//! The script that runs: on whose behalf, and on what.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::server::arguments::Arguments;
use crate::server::flavour::Flavour;
use crate::server::gate::Caller;
use crate::server::state::State;

/// What the functions of a script need to know.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) flavour: Flavour,
    /// The server's, while a script runs.
    pub(crate) state: Box<State>,
    pub(crate) caller: Caller,
    pub(crate) sha1: String,
    /// The words of the command that is called, to be used again.
    pub(crate) arguments: Arguments,
    pub(crate) has_written: bool,
    /// Whether the memory was full when the script began.
    pub(crate) was_full: bool,
    /// How many steps it has taken, each of many instructions.
    pub(crate) steps: u32,
}

/// A script that functions of Lua share.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Running>>);

impl Shared {
    pub(crate) fn new(flavour: Flavour) -> Self {
        Self(Arc::new(Mutex::new(Running {
            flavour,
            state: Box::new(State::new(flavour)),
            caller: Caller::default(),
            sha1: String::new(),
            arguments: Arguments::default(),
            has_written: false,
            was_full: false,
            steps: 0,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
