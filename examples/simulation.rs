//! What two sets of limits would have decided on one trace: `cargo run --release --example simulation`.
//!
//! The trace is a day of a million calls, made up here, or a file whose first line names its columns:
//! `cargo run --release --example simulation -- trace.csv "5 per 1m" "5 per 1m, 50 per 1h"`. A line that cannot be read is
//! printed and left out.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::error::Error;
use std::fs::File;
use std::time::{Duration, Instant, SystemTime};
use std::{env, iter};

use fastrand::Rng;
use tallygate::simulation::{Comparison, CsvTrace, TraceCall, TraceError};
use tallygate::{Policy, Subject, parse_rules};

const CALLS: usize = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = env::args().skip(1).collect();
    let (file, before, after) = match &words[..] {
        [] => (None, "5 per 1m", "5 per 1m, 50 per 1h"),
        [file, before, after] => (Some(file), before.as_str(), after.as_str()),
        _ => return Err("usage: simulation [trace.csv \"rules before\" \"rules after\"]".into()),
    };
    let mut comparison = Comparison::new(&policy(before)?, &policy(after)?);
    let started = Instant::now();
    match file {
        None => comparison.run(day(), Err)?,
        Some(file) => {
            let skip = |mistake: TraceError| {
                eprintln!("{mistake}");
                Ok(())
            };
            comparison.run(CsvTrace::new(File::open(file)?)?, skip)?;
        }
    }
    println!("{before}:\n  {}", comparison.before());
    println!("{after}:\n  {}", comparison.after());
    println!("the difference:\n  {comparison}");
    println!("decided twice in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn policy(rules: &str) -> Result<Policy, Box<dyn Error>> {
    let rules = parse_rules(rules).map_err(|mistakes| {
        let texts: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        texts.join("; ")
    })?;
    Ok(Policy::builder("simulated").rules(rules).build()?)
}

/// A day in which a few of many customers make most of the calls.
fn day() -> impl Iterator<Item = Result<TraceCall, TraceError>> {
    let mut random = Rng::with_seed(7);
    let mut now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let calls = iter::repeat_with(move || {
        now += Duration::from_micros(random.u64(0..172_800));
        let customer = random.u32(0..100) * random.u32(0..100);
        Ok(TraceCall::new(now, Subject::of(customer)))
    });
    calls.take(CALLS)
}
