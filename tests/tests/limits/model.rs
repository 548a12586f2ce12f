//! Every store decides as the model does: admission, the rule to report, the time to wait, and all reports.

mod answers;
mod coverage;
mod dense;
mod laws;
mod policies;
mod replaced;
mod sequence;
mod simulated;
mod transcript;

use std::cell::{Cell, RefCell};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use tallygate::testing::ManualClock;
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::model::Drops;
use tallygate_harness::seed::{SEED_VARIABLE, seed};
use tallygate_harness::server::{Server, patient};
use tallygate_lua::{
    DECIDE, MAX_PLAIN_RULES, MAX_TOGETHER_SUBJECTS, at_callers_time, max_together_rules, windows, windows_alone,
    windows_together,
};
use tallygate_rules::MAX_LOG_ENTRIES;
use tokio::runtime::{Builder, Runtime};

use crate::model::coverage::Coverage;
use crate::model::dense::{play_densely, play_tokens};
use crate::model::laws::{no_window_holds_more_than_count, retry_after_is_exact};
use crate::model::sequence::{Stage, choices, play};

const THREADS: u64 = 4;
const MEMORY: &str = "memory://";
/// Behind the address of a cluster: the subjects of a sequence are in one slot.
const TAGGED: &str = "#tagged";
/// Keys expire by the real clock: rules in Redis remember for longer than a sequence takes.
const SHORTEST: Duration = Duration::from_secs(30);

/// How long to search for a shorter sequence that fails: where a call is not over as it has to be, each try takes seconds.
const LONGEST_SEARCH_MS: u32 = 60_000;

/// Starts a server that knows all scripts: concurrent calls are decided in their order then.
fn server() -> Server {
    let server = Server::start();
    let windows = (1..=MAX_PLAIN_RULES).flat_map(|rules| [windows(rules), windows_alone(rules)]);
    let of = |subjects| (1..=max_together_rules(subjects)).map(move |rules| windows_together(subjects, rules));
    let together = (2..=MAX_TOGETHER_SUBJECTS).flat_map(of);
    for script in windows.chain(together).chain([DECIDE.to_owned()]) {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(at_callers_time(&script)).exec(&mut server.connection()).unwrap();
    }
    server
}

mod in_memory {
    use super::*;

    #[test]
    fn memory_equals_the_model() {
        equals_the_model(MEMORY, cases(3_000, 20_000), Duration::ZERO).assert_wide();
    }

    #[test]
    fn memory_equals_the_model_where_calls_share_entries() {
        let played = on_threads(MEMORY, |runtime, stage, seed| Ok(runtime.block_on(play_densely(stage, seed))));
        for counts in played {
            let is_wide = counts.denied > 1_000 && counts.refunded > 1_000 && counts.unrefunded > 1_000;
            assert!(is_wide && counts.in_window > MAX_LOG_ENTRIES + 1_000, "{counts:?}");
        }
    }
}

#[test]
fn redis_equals_the_model() {
    equals_the_model(&server().url(), cases(400, 1_500), SHORTEST).assert_whole();
}

#[test]
fn stores_equal_the_model_where_costs_differ_as_those_of_tokens_do() {
    let server = server();
    for url in [MEMORY, &server.url()] {
        for counts in on_threads(url, |runtime, stage, seed| Ok(runtime.block_on(play_tokens(stage, seed)))) {
            let is_wide = counts.denied > 50 && counts.refunded > 50 && counts.settled > 50;
            assert!(is_wide && counts.in_window > 200, "{url}: {counts:?}");
        }
    }
}

#[test]
fn a_cluster_equals_the_model_with_subjects_in_several_slots_and_in_one() {
    let cluster = Cluster::start();
    for url in [cluster.url(), format!("{}{TAGGED}", cluster.url())] {
        equals_the_model(&url, cases(200, 1_500), SHORTEST).assert_whole();
    }
}

#[test]
fn in_memory_a_simulation_equals_the_model() {
    let mut random = Rng::with_seed(seed());
    let mut seen = simulated::Seen::default();
    for _ in 0..cases(1_000, 10_000) {
        seen += simulated::equals_the_model(&mut random);
    }
    seen.assert_wide();
}

#[test]
fn in_memory_no_subject_that_others_replace_is_admitted_when_the_model_denies_it() {
    let (first, mut seen) = (seed(), replaced::Seen::default());
    for case in 0..cases(500, 20_000) {
        seen += replaced::admits_no_more_than_the_model(first.wrapping_add(case));
    }
    seen.assert_wide();
}

#[test]
fn in_memory_the_laws_hold() {
    the_laws_hold(MEMORY, cases(500, 2_000), Duration::ZERO);
}

#[test]
fn in_redis_the_laws_hold() {
    the_laws_hold(&server().url(), cases(25, 100), SHORTEST);
}

/// Plays that many sequences, and returns what they met. The message of a failure shows the shortest sequence that fails.
fn equals_the_model(url: &str, sequences: u64, shortest: Duration) -> Coverage {
    let coverages = on_threads(url, |runtime, stage, seed| {
        let coverage = RefCell::new(Coverage::default());
        let cases = u32::try_from(sequences / THREADS).unwrap();
        let config = Config {
            cases,
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            max_shrink_time: LONGEST_SEARCH_MS,
            ..Config::default()
        };
        let result = TestRunner::new(config).run(&choices(), |choices| {
            let played = runtime.block_on(play(stage, &choices, shortest, &mut coverage.borrow_mut()));
            played.map_err(TestCaseError::fail)
        });
        match result {
            Ok(()) => Ok(coverage.into_inner()),
            // Without the choices: the transcript shows what they lead to.
            Err(TestError::Fail(difference, _)) => Err(difference.to_string()),
            Err(aborted @ TestError::Abort(_)) => Err(aborted.to_string()),
        }
    });
    let mut all = Coverage::default();
    for coverage in coverages {
        all += coverage;
    }
    all
}

fn the_laws_hold(url: &str, callers: usize, shortest: Duration) {
    let seen = on_threads(url, |runtime, stage, seed| {
        runtime.block_on(async {
            let mut random = Rng::with_seed(seed);
            let mut counts = [0, 0];
            for _ in 0..callers {
                let seed = random.u64(..);
                counts[0] += retry_after_is_exact(stage, seed, shortest).await;
                counts[1] += no_window_holds_more_than_count(stage, seed, shortest).await;
            }
            Ok(counts)
        })
    });
    let [waits, full] = [0, 1].map(|of| seen.iter().map(|counts| counts[of]).sum::<u64>());
    let callers = THREADS * callers as u64;
    assert!(waits > 10 * callers && full > callers, "{waits} waits, {full} full windows");
}

/// Runs a test on several threads, each with a runtime, a limiter and a seed of its own.
///
/// # Panics
///
/// When the test fails on a thread.
fn on_threads<T: Send>(url: &str, test: impl Fn(&Runtime, &Stage, u64) -> Result<T, String> + Sync) -> Vec<T> {
    let (seed, test) = (seed(), &test);
    let run = |thread: u64| {
        move || {
            let clock = ManualClock::new(time(START_US));
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            // Overrides hold for all limiters with one prefix.
            let (url, is_tagged) = url.strip_suffix(TAGGED).map_or((url, false), |url| (url, true));
            let prefix = if is_tagged { "tagged" } else { "thread" };
            let limiter = patient().clock(&clock).prefix(format!("{prefix}{thread}"));
            let limiter = runtime.block_on(async { limiter.connect_lazy(url) }).unwrap();
            let stage = Stage {
                limiter,
                clock,
                drops: if url == MEMORY { Drops::AtOnce } else { Drops::Together },
                // Calls of one node go together, and those of several are decided in parts.
                keeps_order: !url.starts_with("redis+cluster:"),
                is_tagged,
                played: Cell::new(0),
            };
            test(&runtime, &stage, seed.wrapping_add(thread))
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic, which is shown above")).collect()
    });
    let results: Result<Vec<_>, _> = results.into_iter().collect();
    results.unwrap_or_else(|failure| panic!("{failure}\n{SEED_VARIABLE}={seed} plays it again"))
}
