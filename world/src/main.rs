//! Plays simulated worlds: see the README of this package.

#![allow(clippy::print_stdout, reason = "this is a command-line program")]

#[cfg(tallygate_world)]
mod command;
#[cfg(tallygate_world)]
mod figures;

#[cfg(tallygate_world)]
fn main() -> std::process::ExitCode {
    command::run()
}

#[cfg(not(tallygate_world))]
fn main() {
    println!("run `cargo xtask world`, which builds this program with `--cfg tallygate_world`");
}
