//! `tallygate completions`: words that a shell completes.

use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;
use serde_json::json;

use crate::failure::Failure;
use crate::live;
use crate::output::Output;

/// The name of the program, as a shell finds it.
const PROGRAM: &str = "tallygate";

/// Print what a shell needs to complete the words of this command
///
/// The shell asks this program while somebody types. Names of policies, labels and rules come from the server of TALLYGATE_URL,
/// or of the `--url` that was typed before. Nothing is completed that it does not say within a second.
#[allow(clippy::doc_markdown, reason = "it is the text of the help")]
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
    /// Returns the script that the shell loads.
    pub(crate) fn run(&self) -> Result<Output, Failure> {
        let shell = self.shell.to_string();
        let mut script = Vec::new();
        let written = Shells::builtins()
            .completer(&shell)
            .map(|completer| completer.write_registration(live::VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script));
        match written {
            Some(Ok(())) => {
                let script = String::from_utf8_lossy(&script).into_owned();
                let json = json!({ "shell": shell, "script": script });
                Ok(Output::done(script, json))
            }
            _ => Err(Failure::usage(format!("there is no script for {shell}"))),
        }
    }
}
