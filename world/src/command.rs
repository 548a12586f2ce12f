//! The command line: which worlds are played, and what is said about them.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::figures;
use tallygate_world::history::{Deed, Event};
use tallygate_world::planted;
use tallygate_world::run::{self, Failure, Played};
use tallygate_world::topology::Plant;
use tallygate_world::workload::{Extent, Scenario, Topology};

const USAGE: &str = "\
usage: cargo xtask world [option …], or cargo xtask bench partner

  --seeds <number>      how many seeds are played on each topology; 300 unless it is said
  --first <seed>        the first seed; 0 unless it is said
  --seed <seed>         plays one seed and prints its history
  --topology <name>     server, sentinel or cluster; all unless it is said
  --minutes <number>    the longest that calls are made in a world, in virtual time; 10 unless it is said
  --calls <number>      how many calls are made in a world; 50 to 2,000 unless it is said
  --digests             prints a digest of each history
  --planted             plants each known fault in the scripts, and counts the seeds that it takes to be found
  --planted-in-scripts <name>
                        does the same with that fault alone
  --planted-in-library <name>
                        does the same, as that fault is planted in the library that this program was built with";

/// The word that asks for the figures of calls to a partner.
const PARTNER: &str = "partner";

/// What to play.
struct Options {
    seeds: u64,
    first: u64,
    one: Option<u64>,
    topologies: Vec<Topology>,
    extent: Extent,
    shows_digests: bool,
    plants: bool,
    in_scripts: Option<String>,
    in_library: Option<String>,
}

pub(crate) fn run() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match parse(&words) {
        _ if words == [PARTNER] => figures::print(),
        Ok(options) if options.plants || options.in_scripts.is_some() => find_planted(&options),
        Ok(options) => match (&options.in_library, options.one) {
            (Some(name), _) => find(&options, name, &Plant::default()),
            (None, Some(seed)) => play_one(&options, seed),
            (None, None) => play_all(&options),
        },
        Err(mistake) => {
            println!("{mistake}\n\n{USAGE}");
            false
        }
    };
    if outcome { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        seeds: 300,
        first: 0,
        one: None,
        topologies: Topology::ALL.to_vec(),
        extent: Extent::default(),
        shows_digests: false,
        plants: false,
        in_scripts: None,
        in_library: None,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--digests" => options.shows_digests = true,
            "--planted" => options.plants = true,
            "--planted-in-scripts" => options.in_scripts = words.next().cloned(),
            "--planted-in-library" => options.in_library = words.next().cloned(),
            "--seeds" => options.seeds = number(words.next())?,
            "--first" => options.first = number(words.next())?,
            "--seed" => options.one = Some(number(words.next())?),
            "--minutes" => options.extent.longest_us = number(words.next())? * 60_000_000,
            "--calls" => {
                let calls = number(words.next())?;
                options.extent.calls = (calls, calls);
            }
            "--topology" => options.topologies = vec![topology(words.next())?],
            _ => return Err(format!("unknown: `{word}`")),
        }
    }
    Ok(options)
}

fn number(word: Option<&String>) -> Result<u64, String> {
    word.and_then(|word| word.parse().ok()).ok_or_else(|| "a number is missing".to_owned())
}

fn topology(word: Option<&String>) -> Result<Topology, String> {
    let found = Topology::ALL.into_iter().find(|topology| word.is_some_and(|word| word == topology.name()));
    found.ok_or_else(|| "a topology is missing: server, sentinel or cluster".to_owned())
}

/// What was played so far.
#[derive(Default)]
struct Tally {
    worlds: u64,
    calls: u64,
    decisions: u64,
    virtual_us: u64,
    faults: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, scenario: &Scenario, played: &Played) {
        self.worlds += 1;
        self.virtual_us += played.virtual_us;
        scenario.faults.iter().for_each(|plan| *self.faults.entry(plan.fault.kind()).or_default() += 1);
        for entry in &played.history {
            match &entry.event {
                Event::Called { .. } => self.calls += 1,
                Event::Done { deed: Deed::Decided { .. }, .. } => self.decisions += 1,
                _ => {}
            }
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "these are shown with a few digits")]
    fn print(&self, seconds: f64) {
        let hours = self.virtual_us as f64 / 3_600_000_000.0;
        let Self { worlds, calls, decisions, .. } = self;
        println!("{worlds} worlds, {calls} calls, {decisions} decisions by servers, {hours:.1} virtual hours");
        println!("{seconds:.1} s, {:.0} calls a second", *calls as f64 / seconds);
        let faults: Vec<String> = self.faults.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
        println!("faults: {}", faults.join(", "));
    }
}

fn play_all(options: &Options) -> bool {
    let started = Instant::now();
    let tally = Mutex::new(Tally::default());
    let failed = options.topologies.iter().find_map(|&topology| {
        let play = |seed| match run::seed(seed, topology, options.extent, &Plant::default()) {
            Ok((scenario, played)) => {
                if options.shows_digests {
                    println!("{seed} {}", run::digest(&scenario, &played.history));
                }
                if let Ok(mut tally) = tally.lock() {
                    tally.add(&scenario, &played);
                }
                None
            }
            Err(failure) => Some(failure),
        };
        first_failure(options, play)
    });
    // Digests are compared: the time that was needed is not the same.
    if let (Ok(tally), false) = (tally.lock(), options.shows_digests) {
        tally.print(started.elapsed().as_secs_f64());
    }
    failed.is_none_or(|failure| {
        let failure = run::shorten(failure, &Plant::default());
        print_failure(&failure);
        false
    })
}

/// Plays all seeds on all processors, up to the first that fails. Digests need their order, so they take one processor.
fn first_failure(options: &Options, play: impl Fn(u64) -> Option<Box<Failure>> + Sync) -> Option<Box<Failure>> {
    let workers = if options.shows_digests { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let next = AtomicU64::new(options.first);
    let failed: Mutex<Option<Box<Failure>>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = failed.lock().map_or(true, |failed| failed.is_some());
                    if seed >= options.first + options.seeds || is_over {
                        return;
                    }
                    if let (Some(failure), Ok(mut failed)) = (play(seed), failed.lock()) {
                        failed.get_or_insert(failure);
                    }
                }
            });
        }
    });
    failed.into_inner().ok().flatten()
}

fn play_one(options: &Options, seed: u64) -> bool {
    options.topologies.iter().all(|&topology| match run::seed(seed, topology, options.extent, &Plant::default()) {
        Ok((scenario, played)) => {
            print!("{}", run::text(&scenario, &played.history));
            true
        }
        Err(failure) => {
            print!("{}", run::text(&failure.scenario, &failure.history));
            print_failure(&run::shorten(failure, &Plant::default()));
            false
        }
    })
}

fn print_failure(failure: &Failure) {
    println!("\n=== the shortest history that was found\n");
    print!("{}", run::text(&failure.scenario, &failure.history));
    println!("\nseed {} on {}: {}", failure.scenario.seed, failure.scenario.topology.name(), failure.violation);
    println!(
        "again: cargo xtask world --topology {} --seed {}",
        failure.scenario.topology.name(),
        failure.scenario.seed
    );
}

/// Plants the faults of scripts that are asked for, each alone.
fn find_planted(options: &Options) -> bool {
    let is_asked = |name: &str| options.in_scripts.as_ref().is_none_or(|asked| asked == name);
    let asked: Vec<_> = planted::ALL.iter().filter(|planted| is_asked(planted.name)).collect();
    let mut found_all = !asked.is_empty();
    for planted in asked {
        let Some(plant) = planted.plant() else {
            println!("{}: no script has this text any more", planted.name);
            found_all = false;
            continue;
        };
        found_all &= find(options, planted.name, &plant);
    }
    found_all
}

/// Plays until a planted fault is found.
fn find(options: &Options, name: &str, plant: &Plant) -> bool {
    let mut seeds = options.first..options.first + options.seeds;
    let found = seeds.find_map(|seed| {
        options.topologies.iter().find_map(|&topology| run::seed(seed, topology, options.extent, plant).err())
    });
    match &found {
        Some(failure) => {
            let seeds = failure.scenario.seed - options.first + 1;
            println!("| {name} | {} | {seeds} |", failure.violation.promise);
        }
        None => println!("{name}: not found by {} seeds", options.seeds),
    }
    found.is_some()
}
