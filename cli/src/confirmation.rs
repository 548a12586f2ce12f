//! Asking before anything is changed.

use std::io::{self, IsTerminal, Write};

use clap::Args;

use crate::failure::Failure;
use crate::output::printable;

/// Whether to ask before anything is changed.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    /// Change it without asking
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// Asks whether to go on, unless `--yes` is given.
    ///
    /// Fails without a terminal to ask on, or if the answer is no.
    pub(crate) fn ask(self, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let input = io::stdin();
        if !input.is_terminal() {
            return Err(Failure::usage("nobody can be asked, as stdin is no terminal; write `--yes` to go on"));
        }
        let mut errors = io::stderr();
        let asked = write!(errors, "{} [y/N] ", printable(question)).and_then(|()| errors.flush());
        let mut line = String::new();
        let read = asked.and_then(|()| input.read_line(&mut line));
        read.map_err(|error| Failure::usage(format!("the terminal cannot be read: {error}")))?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::usage("nothing was changed")),
        }
    }
}
