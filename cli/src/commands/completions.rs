//! `tallygate completions`: words that a shell completes.

use clap::{Args, Command};
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::output::Output;

/// Print what a shell needs to complete the words of this command
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  tallygate completions bash > tallygate.bash
  tallygate completions zsh > _tallygate
  tallygate completions fish > tallygate.fish";

impl CompletionsCommand {
    /// Returns the script for all words of the program.
    pub(crate) fn run(&self, mut words: Command) -> Output {
        let mut script = Vec::new();
        generate(self.shell, &mut words, "tallygate", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        let json = json!({ "shell": self.shell.to_string(), "script": script });
        Output::done(script, json)
    }
}
