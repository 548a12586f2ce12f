//! The memory of a tally, on the server and in this process.

use std::ops::Range;
use std::time::Duration;

use allocation_counter::measure;
use tallygate::{Limiter, Policy, Rule, Subject};

use super::{SORTED_SET, at_once, runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, Checker};
use crate::peer::SortedSet;
use crate::server::Server;

const HITS: usize = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);
/// The key of the list of policies, which is no subject's.
const POLICIES: &str = "tallygate:!policies";
const UNIT: &str = "tokens";

/// How many subjects share the memory that is measured in this process. It is also their cap where they leave a trace.
const SUBJECTS: usize = 10_000;

/// What a trace may take for each subject of the cap.
const TRACE_BYTES: f64 = 64.0;

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let runtime = runtime(1);
    let policy = sliding("bench.storage", &[(2_000, HOUR)]);
    let ours = runtime.block_on(Checker::connect(&server.url(), &policy));
    let peer = runtime.block_on(SortedSet::load(server, &policy));
    let duel = Duel::once(
        || runtime.block_on(bytes_of_a_subject(server, &ours)),
        || runtime.block_on(bytes_of_a_subject(server, &peer)),
    );
    let on_the_server =
        Figure::ratio("`MEMORY USAGE` of a subject, 1,000 hits", "bytes", SORTED_SET, &duel).at_most(0.2);
    [on_the_server].into_iter().chain(in_this_process()).collect()
}

/// The memory of a subject by its rules, and that of the trace.
fn in_this_process() -> Vec<Figure> {
    let window = |count| Rule::sliding_window(count, HOUR);
    let policies = [
        ("one window", Policy::builder("bench.storage.window").rule(window(100))),
        (
            "two windows",
            Policy::builder("bench.storage.windows").rule(window(100)).rule(Rule::sliding_window(10, HOUR / 60)),
        ),
        ("a token bucket", Policy::builder("bench.storage.bucket").rule(Rule::token_bucket(100, HOUR))),
        ("calls and tokens", Policy::builder("bench.storage.units").rule(window(100)).rule(window(100).counting(UNIT))),
    ];
    let subjects = policies.into_iter().flat_map(|(rules, builder)| {
        let policy = builder.build().expect("a valid policy");
        [1, 4].map(|calls| {
            let limiter = in_memory(4 * SUBJECTS);
            let duel = Duel::once(|| bytes(|| call(&limiter, &policy, 0..SUBJECTS, calls)), || 0.0);
            let [bytes, _] = duel.each();
            Figure::amount(&format!("memory of a subject in this process, calls: {calls}"), "bytes", rules, bytes)
        })
    });
    let policy = sliding("bench.storage.trace", &[(100, HOUR)]);
    let left_by = |max_subjects, called| {
        let limiter = in_memory(max_subjects);
        bytes(|| call(&limiter, &policy, 0..called, 1))
    };
    // Without a subject that was replaced, there is no trace.
    let trace = || left_by(SUBJECTS, 3 * SUBJECTS) - left_by(4 * SUBJECTS, SUBJECTS);
    let [trace, _] = Duel::once(trace, || 0.0).each();
    let what = "memory of the trace, for each subject of the cap";
    subjects.chain([Figure::amount(what, "bytes", "one window", trace).at_most(TRACE_BYTES)]).collect()
}

fn in_memory(max_subjects: usize) -> Limiter {
    Limiter::builder().max_subjects(max_subjects).build_in_memory().expect("a valid limiter")
}

fn call(limiter: &Limiter, policy: &Policy, subjects: Range<usize>, calls: usize) {
    let has_unit = policy.rules().iter().any(|rule| rule.unit().is_some());
    for subject in subjects {
        let subject = Subject::of(subject);
        for _ in 0..calls {
            let check = limiter.check(policy, &subject);
            let check = if has_unit { check.cost_of(UNIT, 2) } else { check };
            assert!(at_once(check).expect("memory answers").is_allowed());
        }
    }
}

/// What this leaves in memory, for each subject.
fn bytes(work: impl FnOnce()) -> f64 {
    measure(work).bytes_current as f64 / SUBJECTS as f64
}

async fn bytes_of_a_subject<C: Caller>(server: &Server, caller: &C) -> f64 {
    server.clear();
    for _ in 0..HITS {
        assert!(caller.call(0).await);
    }
    let keys: Vec<String> = server.ask(&["KEYS", "*"]);
    let keys: Vec<_> = keys.iter().filter(|key| *key != POLICIES).collect();
    let [key] = &keys[..] else { panic!("one subject has one key, not {keys:?}") };
    server.ask(&["MEMORY", "USAGE", key, "SAMPLES", "0"])
}
