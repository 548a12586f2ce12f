//! The command line of Tallygate: who is limited, by which rule, and what other limits would do.

mod arguments;
mod commands;
mod confirmation;
mod connection;
mod counts;
mod duration;
mod failure;
mod fleet;
mod live;
mod number;
mod output;
mod progress;
mod screen;
mod subject;
mod table;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use tallygate::context;
use tokio::runtime;

use self::arguments::CommandLine;
use self::failure::{Exit, Failure};
use self::output::Output;

fn main() -> ExitCode {
    CommandLine::complete_for_shell();
    let arguments = match CommandLine::read() {
        Ok(arguments) => arguments,
        Err(help_or_mistake) => return explain(&help_or_mistake),
    };
    let shown = match run(&arguments) {
        Ok(output) => show(&output, &arguments).map(|()| output.exit),
        Err(failure) => Err(failure),
    };
    match shown {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

/// Runs the command on one thread: it waits most of the time.
fn run(arguments: &CommandLine) -> Result<Output, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::usage(format!("the system gives no runtime: {error}")))?;
    runtime.block_on(context::scope(arguments.context(), arguments.run()))
}

fn show(output: &Output, arguments: &CommandLine) -> Result<(), Failure> {
    let text = if arguments.is_json() { output.as_json() } else { output.as_text() };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

/// Prints the help, or the mistake in the arguments.
fn explain(help_or_mistake: &clap::Error) -> ExitCode {
    match help_or_mistake.print() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Exit::Usage.into(),
        _ if help_or_mistake.use_stderr() => Exit::Usage.into(),
        _ => Exit::Done.into(),
    }
}

fn report(failure: &Failure) -> ExitCode {
    if let Some(text) = failure.text() {
        // If this stream is closed, nobody wants to know.
        let _ = writeln!(io::stderr(), "tallygate: {}", output::printable(text));
    }
    failure.exit().into()
}
