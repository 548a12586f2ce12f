//! Measures Tallygate beside its peers, and says which of the figures it set itself it reaches.
//!
//! `cargo xtask bench` measures all figures; words behind it choose among the groups of [`GROUPS`].

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot go on panics; it prints numbers that are far below 2^52"
)]

mod duel;
mod figure;
mod figures;
mod load;
mod peer;
mod report;
mod server;
mod stopwatch;

use std::env;
use std::path::Path;

use crate::figure::Figure;
use crate::figures::{attribute, compile, decision, latency, server_time, storage, threads, throughput};
use crate::report::Report;
use crate::server::Server;

/// What can be measured by itself, in the order of the report.
const GROUPS: [&str; 8] =
    ["server-time", "storage", "throughput", "latency", "decision", "attribute", "threads", "compile"];

/// Where the report goes.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench");

fn main() {
    let chosen: Vec<String> = env::args().skip(1).collect();
    let unknown: Vec<_> = chosen.iter().filter(|word| !GROUPS.contains(&word.as_str())).collect();
    assert!(unknown.is_empty(), "unknown group {unknown:?}; there are {GROUPS:?}");
    let server = Server::start();
    let mut report = Report::begin(server.version());
    for group in GROUPS.into_iter().filter(|group| chosen.is_empty() || chosen.iter().any(|word| word == group)) {
        eprintln!("measuring {group} …");
        report.add(measure(group, &server));
    }
    println!("\n{}", report.markdown());
    report.write(Path::new(FOLDER)).expect("the report can be written");
}

fn measure(group: &str, server: &Server) -> Vec<Figure> {
    match group {
        "server-time" => server_time::figures(server),
        "storage" => storage::figures(server),
        "throughput" => throughput::figures(server),
        "latency" => latency::figures(server),
        "decision" => decision::figures(),
        "attribute" => attribute::figures(),
        "threads" => threads::figures(),
        _ => compile::figures(Path::new(FOLDER)),
    }
}
