//! Puts the scripts together from their parts, so that the crate has them as constants and a mistake in them fails the
//! build.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

#[path = "src/contract.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is part of the crate; here only the values are needed")]
mod contract;
#[path = "src/expand.rs"]
mod expand;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use self::contract::{
    ADMITTED, BAN_BYTES, BANNED, CELL_BYTES, CRON, DUPLICATE, FIXED_WINDOW, INTEGER_BYTES, NEVER, PEEK, PROTOCOL,
    REPORT, SLIDING_COUNTER, SLIDING_WINDOW, STALE_TICKS, TOKEN_BUCKET, UNREADABLE,
};
use self::expand::Sources;

const SCRIPTS: [&str; 3] = ["decide.lua", "refund.lua", "ban.lua"];

fn main() {
    for file in SCRIPTS.iter().chain(&["parts"]) {
        println!("cargo::rerun-if-changed={file}");
    }
    if let Err(mistake) = write_scripts(&folder("CARGO_MANIFEST_DIR"), &folder("OUT_DIR")) {
        println!("cargo::error={mistake}");
        process::exit(1);
    }
}

/// A folder that cargo names in a variable.
fn folder(variable: &str) -> PathBuf {
    env::var_os(variable).unwrap_or_default().into()
}

fn write_scripts(from: &Path, to: &Path) -> Result<(), String> {
    let read = |file: &str| fs::read_to_string(from.join(file)).ok();
    let sources = Sources { read: &read, constants: &constants() };
    for script in SCRIPTS {
        fs::write(to.join(script), sources.expand(script)?).map_err(|error| format!("{script}: {error}"))?;
    }
    Ok(())
}

/// The contract in the words of the scripts. `INTEGER`, `SIGNED`, `CELL` and `BAN` are formats of `struct.pack`.
fn constants() -> [(&'static str, String); 21] {
    let letter = |kind: u8| char::from(kind).to_string();
    let integers = |bytes: usize| format!("I{INTEGER_BYTES}").repeat(bytes / INTEGER_BYTES);
    [
        ("PROTOCOL", PROTOCOL.to_owned()),
        ("SLIDING_WINDOW", letter(SLIDING_WINDOW)),
        ("DUPLICATE", letter(DUPLICATE)),
        ("SLIDING_COUNTER", letter(SLIDING_COUNTER)),
        ("FIXED_WINDOW", letter(FIXED_WINDOW)),
        ("CRON", letter(CRON)),
        ("TOKEN_BUCKET", letter(TOKEN_BUCKET)),
        ("REPORT", REPORT.to_string()),
        ("PEEK", PEEK.to_string()),
        ("ADMITTED", ADMITTED.to_string()),
        ("STALE_TICKS", STALE_TICKS.to_string()),
        ("UNREADABLE", UNREADABLE.to_string()),
        ("BANNED", BANNED.to_string()),
        ("NEVER", NEVER.to_string()),
        ("INTEGER_BYTES", INTEGER_BYTES.to_string()),
        ("CELL_BYTES", CELL_BYTES.to_string()),
        ("BAN_BYTES", BAN_BYTES.to_string()),
        ("INTEGER", integers(INTEGER_BYTES)),
        ("SIGNED", format!("i{INTEGER_BYTES}")),
        ("CELL", integers(CELL_BYTES)),
        ("BAN", integers(BAN_BYTES)),
    ]
}
