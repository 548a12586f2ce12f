//! The commands and options of the command line.

use std::env;

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use tallygate::context::Context;

use crate::commands::ban::{BanCommand, UnbanCommand};
use crate::commands::bans::BansCommand;
use crate::commands::check::CheckCommand;
use crate::commands::completions::CompletionsCommand;
use crate::commands::doctor::DoctorCommand;
use crate::commands::overriding::OverrideCommand;
use crate::commands::pause::{PauseCommand, ResumeCommand};
use crate::commands::peek::PeekCommand;
use crate::commands::policies::PoliciesCommand;
use crate::commands::reset::ResetCommand;
use crate::commands::simulate::SimulateCommand;
use crate::commands::top::TopCommand;
use crate::commands::watch::WatchCommand;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::live;
use crate::output::Output;

/// Shows and changes rate limits while they run: who is limited, by which rule, and what other limits would do
#[derive(Debug, Parser)]
#[command(name = "tallygate", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,

    /// Print JSON, for scripts
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  export TALLYGATE_URL=redis://127.0.0.1/
  tallygate policies
  tallygate peek sms.send 13800000000
  tallygate check limits.toml

Exit codes:
  0  done; the answer is yes: admitted, no mistakes, no problems
  1  the answer is no: denied, mistakes, problems
  2  the command cannot be carried out as it is written
  3  the server cannot be reached, or cannot answer now
  4  the server refuses: a password, a permission, a key that is no tally";

#[derive(Debug, Subcommand)]
enum Command {
    Policies(PoliciesCommand),
    Peek(PeekCommand),
    Top(TopCommand),
    Watch(WatchCommand),
    Reset(ResetCommand),
    Ban(BanCommand),
    Unban(UnbanCommand),
    Bans(BansCommand),
    Pause(PauseCommand),
    Resume(ResumeCommand),
    Override(OverrideCommand),
    Check(CheckCommand),
    Simulate(SimulateCommand),
    Doctor(DoctorCommand),
    Completions(CompletionsCommand),
}

impl CommandLine {
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut command = without_empty_variables(Self::command());
        command.build();
        let names: Vec<_> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let command = names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_plain_usage));
        Self::from_arg_matches(&command.try_get_matches()?)
    }

    /// Completes words and ends the program, if a shell has started it for that.
    pub(crate) fn complete_for_shell() {
        CompleteEnv::with_factory(Self::command).var(live::VARIABLE).complete();
    }

    pub(crate) fn context(&self) -> Context {
        self.connection.context()
    }

    pub(crate) async fn run(&self) -> Result<Output, Failure> {
        let connection = &self.connection;
        match &self.command {
            Command::Policies(command) => command.run(connection).await,
            Command::Peek(command) => command.run(connection, self.json).await,
            Command::Top(command) => command.run(connection).await,
            Command::Watch(command) => command.run(connection, self.json).await,
            Command::Reset(command) => command.run(connection).await,
            Command::Ban(command) => command.run(connection).await,
            Command::Unban(command) => command.run(connection).await,
            Command::Bans(command) => command.run(connection).await,
            Command::Pause(command) => command.run(connection).await,
            Command::Resume(command) => command.run(connection).await,
            Command::Override(command) => command.run(connection).await,
            Command::Check(command) => command.run(connection).await,
            Command::Simulate(command) => command.run(),
            Command::Doctor(command) => command.run(connection).await,
            Command::Completions(command) => command.run(),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

/// Takes an empty variable for one that is not set, as scripts and files of variables often leave it. Only an empty prefix is
/// refused: it may be meant to name other keys than those of the default.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let is_empty = argument.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
        if is_empty && argument.get_id() != "prefix" { argument.env(Resettable::Reset) } else { argument }
    })
}

/// Makes errors show the usage of the help. Otherwise, options that the environment sets would look required.
fn with_plain_usage(mut command: clap::Command) -> clap::Command {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    command.override_usage(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_fit_together() {
        CommandLine::command().debug_assert();
    }
}
