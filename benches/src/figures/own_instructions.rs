//! The cost of a call for its own process, in instructions: they do not depend on the load of the machine.
//!
//! A process of its own makes few calls, and another one many. The difference is what calls take once all is warm.

mod annotated;

use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use governor::Quota;
use tallygate::{Limiter, Policy, Rule, Subject};
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;

use super::at_once;
use crate::duel::{Duel, Spread};
use crate::figure::Figure;
use crate::peer::keyed::{KeyedGovernor, KeyedRatelimit, KeyedThrottlecrab};
use crate::server::Server;

/// The word of the command line that lets this program play a path: its number, how many calls, and the server.
pub(crate) const PLAY: &str = "--play";

const SUBJECTS: usize = 1_000;
const TOGETHER: usize = 128;

const HOUR: Duration = Duration::from_secs(3_600);
const LARGE: u64 = 1 << 30;
/// The most tokens of a call.
const MOST_TOKENS: u64 = 4_000;
/// The longest that a denial is cached.
const LONGEST: Duration = Duration::from_secs(10);
const AHEAD: Duration = Duration::from_millis(100);

const TOKENS: &str = "in memory, tokens, admitted";
const CALLS_AND_TOKENS: &str = "in memory, calls and tokens, admitted";

/// A way that calls take, and what plays it with so many calls of each subject.
type Path = (&'static str, fn(&Ground, usize));

/// How many more calls of each subject one process makes than the other one. The first half of them warms up.
fn counted_calls(path: &str) -> usize {
    match path {
        // After some calls, enough calls are taken ahead. Each denied subject asks the server once a second.
        "in Redis, taken ahead" | "in Redis, cached denial" => 40,
        path if path.starts_with("in Redis") => 4,
        _ => 20,
    }
}

/// The goal of a path; `None` if it is there for comparison.
fn most_instructions(path: &str) -> Option<f64> {
    match path.strip_prefix("in memory, ")? {
        "by the attribute, admitted" => Some(700.0),
        "one window, admitted" => Some(600.0),
        "by the attribute, pausable, admitted" => None,
        path if path.starts_with("by the attribute") && path.ends_with("admitted") && !path.contains("tokens") => {
            Some(900.0)
        }
        _ => None,
    }
}

const PATHS: [Path; 39] = [
    ("in memory, one window, admitted", |ground, calls| ground.memory(calls, &[window(LARGE)])),
    ("in memory, one window, denied", |ground, calls| ground.memory(calls, &[window(1)])),
    ("in memory, two windows, admitted", |ground, calls| ground.memory(calls, &[window(LARGE), second_window()])),
    ("in memory, fixed window, admitted", |ground, calls| ground.memory(calls, &[Rule::fixed_window(LARGE, HOUR)])),
    ("in memory, sliding counter, admitted", |ground, calls| {
        ground.memory(calls, &[Rule::sliding_counter(1 << 20, HOUR)]);
    }),
    ("in memory, token bucket, admitted", |ground, calls| ground.memory(calls, &[Rule::token_bucket(1 << 20, HOUR)])),
    ("in memory, concurrency, admitted", |ground, calls| ground.memory(calls, &[Rule::concurrency(2, HOUR)])),
    ("in memory, two subjects, admitted", |ground, calls| ground.memory_of_two(calls)),
    (TOKENS, |ground, calls| ground.memory_of_tokens(calls)),
    (CALLS_AND_TOKENS, |ground, calls| ground.memory_of_calls_and_tokens(calls)),
    ("in memory, calls and tokens, denied", |ground, calls| ground.memory_of_denied_tokens(calls)),
    ("in memory, refunded", |ground, calls| ground.memory_refunded(calls)),
    ("in memory, a new subject, admitted", |_, calls| call_new_subjects(calls, 1 << 20)),
    ("in memory, a new subject in the place of another, admitted", |_, calls| {
        // Full once it is warm.
        call_new_subjects(calls, 10 * SUBJECTS);
    }),
    ("in memory, by the attribute, admitted", |ground, calls| ground.attribute(calls)),
    ("in memory, by the attribute, denied", |ground, calls| ground.denied_attribute(calls)),
    ("in memory, by the attribute, token bucket, admitted", |ground, calls| ground.bucket_attribute(calls)),
    ("in memory, by the attribute, plain function, admitted", |ground, calls| ground.plain_attribute(calls)),
    ("in memory, by the attribute, calls and tokens, admitted", |ground, calls| ground.tokens_attribute(calls)),
    ("in memory, by the attribute, two windows, admitted", |ground, calls| {
        ground.each_phone(calls, |phone| at_once(annotated::two_windows(phone)).expect("there is room"));
    }),
    ("in memory, by the attribute, a window and a token bucket, admitted", |ground, calls| {
        ground.each_phone(calls, |phone| at_once(annotated::window_and_bucket(phone)).expect("there is room"));
    }),
    ("in memory, by the attribute, fixed window, admitted", |ground, calls| {
        ground.each_phone(calls, |phone| at_once(annotated::fixed_window(phone)).expect("there is room"));
    }),
    ("in memory, by the attribute, sliding counter, admitted", |ground, calls| {
        ground.each_phone(calls, |phone| at_once(annotated::sliding_counter(phone)).expect("there is room"));
    }),
    ("in memory, by the attribute, concurrency, admitted", |ground, calls| {
        ground.each_phone(calls, |phone| at_once(annotated::concurrency(phone)).expect("there is room"));
    }),
    ("in memory, by the attribute, pausable, admitted", |ground, calls| {
        ground.each_phone(calls, |phone| at_once(annotated::pausable(phone)).expect("there is room"));
    }),
    ("of governor, keyed, admitted", |ground, calls| {
        let governor = KeyedGovernor::new(Quota::per_second(NonZeroU32::MAX));
        ground.each_key(calls, |phone| assert!(governor.admits(phone)));
    }),
    ("of throttlecrab, admitted", |ground, calls| {
        let throttlecrab = KeyedThrottlecrab::new(SUBJECTS);
        ground.each_key(calls, |phone| assert!(throttlecrab.admits(phone)));
    }),
    ("of ratelimit, a bucket for each in a map, admitted", |ground, calls| {
        let ratelimit = KeyedRatelimit::new(&ground.phones);
        ground.each_key(calls, |phone| assert!(ratelimit.admits(phone)));
    }),
    ("in Redis, one window, admitted", |ground, calls| ground.redis(calls, &[window(LARGE)])),
    ("in Redis, one window, denied", |ground, calls| ground.redis(calls, &[window(1)])),
    ("in Redis, two windows, admitted", |ground, calls| ground.redis(calls, &[window(LARGE), second_window()])),
    ("in Redis, token bucket, admitted", |ground, calls| ground.redis(calls, &[Rule::token_bucket(1 << 20, HOUR)])),
    ("in Redis, concurrency, admitted", |ground, calls| ground.redis(calls, &[Rule::concurrency(2, HOUR)])),
    ("in Redis, two subjects, admitted", |ground, calls| ground.redis_of_two(calls)),
    ("in Redis, refunded", |ground, calls| ground.redis_refunded(calls)),
    ("in Redis, by the attribute, admitted", |ground, calls| ground.redis_attribute(calls)),
    ("in Redis, gathered by 128, admitted", |ground, calls| ground.redis_gathered(calls)),
    ("in Redis, cached denial", |ground, calls| ground.cached_denials(calls)),
    ("in Redis, taken ahead", |ground, calls| ground.taken_ahead(calls)),
];

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let mut tokens = f64::NAN;
    let figure = |(number, (name, _)): (usize, &Path)| {
        let what = format!("instructions of a call {name}");
        server.clear();
        match (*name, instructions(number, server)) {
            (TOKENS, Ok(each)) => {
                tokens = each;
                Figure::amount(&what, "Ir", "", Spread::of(vec![each]))
            }
            (CALLS_AND_TOKENS, Ok(each)) => {
                Figure::ratio(&what, "Ir", "one rule of such weights", &Duel::once(|| each, || tokens)).at_most(1.6)
            }
            (_, Ok(each)) => {
                let figure = Figure::amount(&what, "Ir", "", Spread::of(vec![each]));
                most_instructions(name).into_iter().fold(figure, Figure::at_most)
            }
            (_, Err(why)) => Figure::skipped(&what, "", &why),
        }
    };
    PATHS.iter().enumerate().map(figure).collect()
}

/// Plays a path in this process, as [`instructions`] asks.
pub(crate) fn play(words: &[String]) {
    let [number, calls, url] = words else { panic!("`{PLAY} <number> <calls> <url>`") };
    let (_, play) = PATHS[number.parse::<usize>().expect("the number of a path")];
    play(&Ground::new(url), calls.parse().expect("a number of calls"));
}

/// Counts the instructions of each call of a path.
fn instructions(number: usize, server: &Server) -> Result<f64, String> {
    let counted = counted_calls(PATHS[number].0);
    let count = |calls: usize| {
        let folder = tempfile::tempdir().map_err(|error| format!("skipped: no folder ({error})"))?;
        let file = folder.path().join("counted");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--tool=cachegrind", "--cache-sim=no", "--log-file=/dev/null"]);
        valgrind.arg(format!("--cachegrind-out-file={}", file.display())).arg(env::current_exe().expect("a program"));
        valgrind.args([PLAY, &number.to_string(), &calls.to_string(), &server.url()]);
        let status = valgrind.status().map_err(|error| format!("skipped: no valgrind ({error})"))?;
        assert!(status.success(), "path {number} under valgrind");
        let text = fs::read_to_string(&file).expect("valgrind writes what it counted");
        let total = text.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a sum");
        Ok::<f64, String>(total.trim().parse().expect("a number"))
    };
    let warm = counted / 2;
    Ok((count(warm + counted)? - count(warm)?) / (counted * SUBJECTS) as f64)
}

fn window(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn second_window() -> Rule {
    Rule::sliding_window(LARGE + 1, 2 * HOUR)
}

/// What calls are made with.
struct Ground {
    url: String,
    /// One thread, so that nothing depends on which thread is free.
    runtime: Runtime,
    phones: Vec<String>,
    subjects: Vec<Subject>,
    /// What a call of each subject costs in tokens.
    tokens: Vec<u64>,
    everyone: Subject,
}

impl Ground {
    fn new(url: &str) -> Self {
        let phones: Vec<_> = (0..SUBJECTS).map(|number| format!("13800000{number:03}")).collect();
        let mut random = fastrand::Rng::with_seed(7);
        Self {
            tokens: (0..SUBJECTS).map(|_| random.u64(1..=MOST_TOKENS)).collect(),
            url: url.to_owned(),
            runtime: runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
            subjects: phones.iter().map(|phone| Subject::of("sms").and(phone)).collect(),
            phones,
            everyone: Subject::everyone(),
        }
    }

    /// Connects a limiter that waits for a slow process.
    fn connect(&self, denial_cache: Duration) -> Limiter {
        let builder = Limiter::builder().deadline(Duration::from_secs(60)).denial_cache(denial_cache);
        self.runtime.block_on(builder.connect(&*self.url)).expect("the server answers")
    }

    fn each_subject(&self, calls: usize, call: impl Fn(&Subject)) {
        (0..calls).for_each(|_| self.subjects.iter().for_each(&call));
    }

    fn each_phone(&self, calls: usize, call: impl Fn(&str)) {
        self.each_key(calls, |phone| call(phone));
    }

    /// Calls each phone as the text that it is in a map.
    fn each_key(&self, calls: usize, call: impl Fn(&String)) {
        (0..calls).for_each(|_| self.phones.iter().for_each(|phone| call(black_box(phone))));
    }

    /// Calls each subject, with what its calls cost in tokens.
    fn each_cost(&self, calls: usize, call: impl Fn(&Subject, u64)) {
        let costs = || self.subjects.iter().zip(&self.tokens);
        (0..calls).for_each(|_| costs().for_each(|(subject, &cost)| call(subject, cost)));
    }

    fn memory(&self, calls: usize, rules: &[Rule]) {
        let (limiter, policy) = (Limiter::in_memory(), policy(rules));
        self.each_subject(calls, |subject| drop(black_box(at_once(limiter.check(&policy, subject)))));
    }

    fn memory_of_two(&self, calls: usize) {
        let (limiter, policy) = (Limiter::in_memory(), policy_of_two());
        self.each_subject(calls, |subject| {
            let check = limiter.check(&policy, subject).subject("everybody", &self.everyone);
            drop(black_box(at_once(check)));
        });
    }

    fn memory_of_tokens(&self, calls: usize) {
        let (limiter, policy) = (Limiter::in_memory(), policy(&[window(LARGE)]));
        self.each_cost(calls, |subject, cost| {
            drop(black_box(at_once(limiter.check(&policy, subject).cost(cost))));
        });
    }

    fn memory_of_calls_and_tokens(&self, calls: usize) {
        let (limiter, policy) = (Limiter::in_memory(), policy_of_tokens(LARGE));
        self.each_cost(calls, |subject, cost| {
            drop(black_box(at_once(limiter.check(&policy, subject).cost_of("tokens", cost))));
        });
    }

    fn memory_of_denied_tokens(&self, calls: usize) {
        let (limiter, policy) = (Limiter::in_memory(), policy_of_tokens(MOST_TOKENS));
        self.each_subject(calls, |subject| {
            drop(black_box(at_once(limiter.check(&policy, subject).cost_of("tokens", MOST_TOKENS))));
        });
    }

    fn memory_refunded(&self, calls: usize) {
        let (limiter, policy) = (Limiter::in_memory(), policy(&[window(LARGE)]));
        self.each_subject(calls, |subject| {
            let decision = at_once(limiter.check(&policy, subject).refundable()).expect("memory answers");
            let permit = decision.into_result().expect("there is room");
            assert!(at_once(permit.refund()).expect("memory answers"));
        });
    }

    fn attribute(&self, calls: usize) {
        self.each_phone(calls, |phone| at_once(annotated::window(phone)).expect("there is room"));
    }

    fn denied_attribute(&self, calls: usize) {
        self.each_phone(calls, |phone| drop(black_box(at_once(annotated::closed_window(phone)))));
    }

    fn bucket_attribute(&self, calls: usize) {
        self.each_phone(calls, |phone| at_once(annotated::bucket(phone)).expect("there is room"));
    }

    fn plain_attribute(&self, calls: usize) {
        self.each_phone(calls, |phone| annotated::window_of_plain_function(phone).expect("there is room"));
    }

    fn tokens_attribute(&self, calls: usize) {
        for _ in 0..calls {
            for (phone, &tokens) in self.phones.iter().zip(&self.tokens) {
                at_once(annotated::tokens(black_box(phone), tokens)).expect("there is room");
            }
        }
    }

    fn redis(&self, calls: usize, rules: &[Rule]) {
        let (limiter, policy) = (self.connect(Duration::ZERO), policy(rules));
        self.each_subject(calls, |subject| {
            let decision = self.runtime.block_on(limiter.check(&policy, subject).into_future());
            drop(decision.expect("the server answers"));
        });
    }

    fn redis_of_two(&self, calls: usize) {
        let (limiter, policy) = (self.connect(Duration::ZERO), policy_of_two());
        self.each_subject(calls, |subject| {
            let check = limiter.check(&policy, subject).subject("everybody", &self.everyone);
            drop(self.runtime.block_on(check.into_future()).expect("the server answers"));
        });
    }

    fn redis_refunded(&self, calls: usize) {
        let (limiter, policy) = (self.connect(Duration::ZERO), policy(&[window(LARGE)]));
        self.each_subject(calls, |subject| {
            self.runtime.block_on(async {
                let decision = limiter.check(&policy, subject).refundable().await.expect("the server answers");
                let permit = decision.into_result().expect("there is room");
                assert!(permit.refund().await.expect("the server answers"));
            });
        });
    }

    fn redis_attribute(&self, calls: usize) {
        self.connect(Duration::ZERO).install().expect("the first one");
        self.each_phone(calls, |phone| self.runtime.block_on(annotated::window(phone)).expect("there is room"));
    }

    fn redis_gathered(&self, calls: usize) {
        let (limiter, policy) = (self.connect(Duration::ZERO), policy(&[window(LARGE)]));
        for subjects in (0..calls).flat_map(|_| self.subjects.chunks(TOGETHER)) {
            self.runtime.block_on(async {
                let mut tasks = JoinSet::new();
                for subject in subjects {
                    let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
                    tasks.spawn(async move { limiter.check(&policy, &subject).await });
                }
                for decided in tasks.join_all().await {
                    drop(decided.expect("the server answers"));
                }
            });
        }
    }

    fn cached_denials(&self, calls: usize) {
        let (limiter, policy) = (self.connect(LONGEST), policy(&[window(1)]));
        self.each_subject(calls, |subject| {
            self.runtime.block_on(async {
                drop(black_box(limiter.check(&policy, subject).await.expect("the server answers")));
            });
        });
    }

    fn taken_ahead(&self, calls: usize) {
        let rule = Rule::sliding_window(LARGE, Duration::from_secs(1));
        let policy = Policy::builder("bench.ahead").rule(rule).prefetch(AHEAD).build().expect("a valid policy");
        let limiter = self.connect(Duration::ZERO);
        for _ in 0..calls * SUBJECTS {
            let decision = self.runtime.block_on(limiter.check(&policy, &self.everyone).into_future());
            drop(decision.expect("the server answers"));
        }
    }
}

/// Calls as many new subjects as the others call known ones.
fn call_new_subjects(calls: usize, max_subjects: usize) {
    let limiter = Limiter::builder().max_subjects(max_subjects).build_in_memory().expect("a valid limiter");
    let policy = policy(&[window(LARGE)]);
    for number in 0..calls * SUBJECTS {
        drop(black_box(at_once(limiter.check(&policy, &Subject::of("sms").and(13_800_000_000 + number)))));
    }
}

fn policy(rules: &[Rule]) -> Policy {
    Policy::builder("bench.instructions").rules(rules.iter().cloned()).build().expect("a valid policy")
}

fn policy_of_tokens(count: u64) -> Policy {
    policy(&[window(LARGE), window(count).counting("tokens")])
}

fn policy_of_two() -> Policy {
    let builder = Policy::builder("bench.instructions").rule(window(LARGE));
    builder.rule_on("everybody", window(LARGE)).build().expect("a valid policy")
}
