//! Measures Tallygate and its peers, and reports which goals are reached.
//!
//! `cargo xtask bench` measures all figures. Further words choose among the groups of [`options::GROUPS`].

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot go on panics; it prints numbers that are far below 2^52"
)]

mod callgrind;
mod cluster;
mod compiler;
mod duel;
mod figure;
mod figures;
mod load;
mod options;
mod peer;
mod recorded;
mod report;
mod server;
mod stopwatch;
mod tally;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use crate::figure::Figure;
#[cfg(feature = "web")]
use crate::figures::web;
use crate::figures::{
    attribute, bounds, compile, decision, floods, instructions, latency, leases, outage, own_instructions, prefetch,
    remembered, server_time, storage, subjects, threads, throughput, tokens, topologies, units, weight, windows,
};
use crate::options::{GROUPS, Options};
use crate::report::Report;
use crate::server::Server;

/// The path of the report.
#[cfg(not(feature = "web"))]
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench");
#[cfg(feature = "web")]
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench/web");

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    if let [word, path @ ..] = words.as_slice()
        && word == own_instructions::PLAY
    {
        own_instructions::play(path);
        return ExitCode::SUCCESS;
    }
    let options = match Options::read(words.into_iter()) {
        Ok(options) => options,
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::FAILURE;
        }
    };
    let server = Server::start();
    let mut report = Report::begin(server.version());
    for group in GROUPS.into_iter().filter(|group| options.has(group)) {
        eprintln!("measuring {group} …");
        report.add(measure(group, &server, &options));
    }
    println!("\n{}", report.markdown());
    if let Some(recorded) = &options.against {
        println!("{}", report.beside(recorded));
    }
    report.write(Path::new(FOLDER)).expect("the report can be written");
    ExitCode::SUCCESS
}

fn measure(group: &str, server: &Server, options: &Options) -> Vec<Figure> {
    match group {
        "instructions" => own_instructions::figures(server).into_iter().chain(instructions::figures()).collect(),
        "throughput" => throughput::figures(server, options.redis_cell.as_deref()),
        "latency" => latency::figures(server),
        "server-time" => server_time::figures(server),
        "weight" => weight::figures(server),
        "tokens" => tokens::figures(),
        "units" => units::figures(server),
        "leases" => leases::figures(server),
        "topologies" => topologies::figures(server),
        "bounds" => bounds::figures(),
        "storage" => storage::figures(server),
        "remembered" => remembered::figures(server),
        "outage" => outage::figures(),
        "prefetch" => prefetch::figures(server),
        "decision" => decision::figures(),
        "attribute" => attribute::figures(),
        "subjects" => subjects::figures(),
        "floods" => floods::figures(),
        "threads" => threads::figures(),
        "windows" => windows::figures(server, options.redis_cell.as_deref()),
        #[cfg(feature = "web")]
        "web" => web::figures(),
        _ => compile::figures(Path::new(FOLDER)),
    }
}
