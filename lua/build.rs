//! Puts the scripts together from their parts. The crate has them as constants, and a mistake in them fails the build.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

#[path = "src/contract.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is part of the crate; here only the values are needed")]
mod contract;
#[path = "src/expand.rs"]
mod expand;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use self::contract::{
    ADMITTED, ASK_AGAIN, BAN_BYTES, BANNED, CELL_BYTES, CLEAN_UP_ENTRIES, CONCURRENCY, COUNTER_COUNT, CRON, DENIAL,
    DUPLICATE, END_BYTES, END_ENTRIES, ENTRY_BYTES, FIXED_WINDOW, INTEGER_BYTES, LATE, LATER, LEASE_NAME_BYTES,
    LEASES_FORGOTTEN, LOG_ENTRIES, LONG_SLACK, LONGEST_LEASE, LONGEST_LOG, NEVER, PART, PAUSE_BYTES, PAUSED, PEEK,
    PLAIN_ADMITTED, PLAIN_ASK_AGAIN, PLAIN_UNREADABLE, POLICIES_LOOKED_AT, PROBE, PROTOCOL, PROVISIONAL,
    REFUND_DISTANCE, REPORT, SLIDING_COUNTER, SLIDING_WINDOW, SOURCE_BYTES, STANDSTILL, TOKEN_BUCKET, TTL_BYTES, UNITS,
    UNREADABLE,
};
use self::expand::Sources;

const SCRIPTS: [&str; 12] = [
    "decide.lua",
    "paused.lua",
    "paused_alone.lua",
    "pause.lua",
    "probe.lua",
    "windows.lua",
    "windows_alone.lua",
    "windows_together.lua",
    "refund.lua",
    "lease.lua",
    "ban.lua",
    "register.lua",
];

/// A search reads the rest of a log at once when no more than this many entries are left.
const BLOCK_ENTRIES: usize = 32;

/// How many entries before and after a guess a search reads together with it.
const NEAR_A_GUESS: usize = 8;

/// How many entries a refund reads at once: most refunds come soon after the call.
const NEAR_ENTRIES: usize = 32;

/// How many bytes of the tallies one script call may copy.
const BUDGET_BYTES: usize = (LOG_ENTRIES + 8_192) * ENTRY_BYTES;

/// How many bytes could be copied in the time that it takes to find and to free dropped entries.
const DROP_BYTES: usize = 32 * 1024;

fn main() {
    for file in SCRIPTS.iter().chain(&["parts"]) {
        println!("cargo::rerun-if-changed={file}");
    }
    if let Err(mistake) = write_scripts(&folder("CARGO_MANIFEST_DIR"), &folder("OUT_DIR")) {
        println!("cargo::error={mistake}");
        process::exit(1);
    }
}

/// Returns a folder that cargo names in an environment variable.
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

/// The constants of the scripts. `INTEGER`, `SIGNED`, `CELL` and `BAN` are formats of `struct.pack`.
fn constants() -> [(&'static str, String); 72] {
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
        ("CONCURRENCY", letter(CONCURRENCY)),
        ("LEASE_NAME_BYTES", LEASE_NAME_BYTES.to_string()),
        ("LEASES_FORGOTTEN", LEASES_FORGOTTEN.to_string()),
        ("LONGEST_LEASE", LONGEST_LEASE.to_string()),
        ("REPORT", REPORT.to_string()),
        ("PEEK", PEEK.to_string()),
        ("PART", PART.to_string()),
        ("DENIAL", DENIAL.to_string()),
        ("PROVISIONAL", PROVISIONAL.to_string()),
        ("UNITS", UNITS.to_string()),
        ("LATE", LATE.to_string()),
        ("LATER", LATER.to_string()),
        ("ADMITTED", ADMITTED.to_string()),
        ("ASK_AGAIN", ASK_AGAIN.to_string()),
        ("UNREADABLE", UNREADABLE.to_string()),
        ("BANNED", BANNED.to_string()),
        ("NEVER", NEVER.to_string()),
        ("PAUSED", PAUSED.to_string()),
        ("PAUSE_BYTES", PAUSE_BYTES.to_string()),
        ("PAUSE_LAST", (PAUSE_BYTES - 1).to_string()),
        ("PAUSE", integers(PAUSE_BYTES)),
        ("PROBE", PROBE.to_string()),
        ("TAKEN_FIRST", (PAUSE_BYTES - INTEGER_BYTES).to_string()),
        ("PROBE_LAST", (PAUSE_BYTES + LEASE_NAME_BYTES - 1).to_string()),
        ("SOURCE_BYTES", SOURCE_BYTES.to_string()),
        ("SOURCE_FIRST", (PAUSE_BYTES + LEASE_NAME_BYTES).to_string()),
        ("SOURCE_LAST", (PAUSE_BYTES + LEASE_NAME_BYTES + SOURCE_BYTES - 1).to_string()),
        ("INTEGER_BYTES", INTEGER_BYTES.to_string()),
        ("CELL_BYTES", CELL_BYTES.to_string()),
        ("BAN_BYTES", BAN_BYTES.to_string()),
        ("ENTRY_BYTES", ENTRY_BYTES.to_string()),
        // Later than every time.
        ("UNKNOWN", (1_u64 << 56).to_string()),
        ("END_BYTES", END_BYTES.to_string()),
        ("END_ENTRIES", END_ENTRIES.to_string()),
        ("END_LAST", (END_BYTES - 1).to_string()),
        ("PLAIN_ADMITTED", PLAIN_ADMITTED.to_string()),
        ("PLAIN_UNREADABLE", PLAIN_UNREADABLE.to_string()),
        ("PLAIN_ASK_AGAIN", PLAIN_ASK_AGAIN.to_string()),
        // Stay as they are until the numbers of subjects and rules are known: see src/windows.rs.
        ("SUBJECTS", "${SUBJECTS}".to_owned()),
        ("FIRST_RULE", "${FIRST_RULE}".to_owned()),
        ("LAST_RULE", "${LAST_RULE}".to_owned()),
        ("TTL_BYTES", TTL_BYTES.to_string()),
        ("BEFORE_LAST", (ENTRY_BYTES - 1).to_string()),
        // The fields of a policy that parts/windows.lua reads only if a call needs them.
        ("TERMS_BYTES", (INTEGER_BYTES + 4 + 4).to_string()),
        ("NEAR_BYTES", (NEAR_ENTRIES * ENTRY_BYTES).to_string()),
        ("BUDGET_BYTES", BUDGET_BYTES.to_string()),
        ("DROP_BYTES", DROP_BYTES.to_string()),
        ("COUNTER_COUNT", COUNTER_COUNT.to_string()),
        ("LOG_ENTRIES", LOG_ENTRIES.to_string()),
        ("LONGEST_LOG", LONGEST_LOG.to_string()),
        ("LONGEST_LOG_BYTES", (LONGEST_LOG * ENTRY_BYTES).to_string()),
        // Besides halves of the log, a search takes its end, its front and two guesses.
        ("SEARCH_STEPS", (LONGEST_LOG.ilog2() + 4).to_string()),
        ("STANDSTILL", STANDSTILL.to_string()),
        ("BLOCK_ENTRIES", BLOCK_ENTRIES.to_string()),
        ("NEAR_A_GUESS", NEAR_A_GUESS.to_string()),
        ("CLEAN_UP_ENTRIES", CLEAN_UP_ENTRIES.to_string()),
        ("REFUND_DISTANCE", REFUND_DISTANCE.to_string()),
        ("LONG_SLACK", LONG_SLACK.to_string()),
        ("POLICIES_LOOKED_AT", POLICIES_LOOKED_AT.to_string()),
        // A time, whose first byte is read apart because it has a mark, and a sum.
        ("TIME_REST", (INTEGER_BYTES - 1).to_string()),
        ("ENTRY", format!("BI{}I{}", INTEGER_BYTES - 1, ENTRY_BYTES - INTEGER_BYTES)),
        ("INTEGER", integers(INTEGER_BYTES)),
        ("SIGNED", format!("i{INTEGER_BYTES}")),
        ("CELL", integers(CELL_BYTES)),
        ("BAN", integers(BAN_BYTES)),
    ]
}
