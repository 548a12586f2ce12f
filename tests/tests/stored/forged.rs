//! Values that are no tallies, under the keys of tallies: no script runs for long, whatever they are, and none of them
//! decides a call.

use std::fmt::Write as _;
use std::iter;
use std::time::Duration;

use futures_util::future::join_all;
use redis::Connection;
use tallygate::{Algorithm, BackendError, BackendErrorKind, Ban, Check, Limiter, Permit, Policy, Rule, Subject};
use tallygate_harness::length::cases;
use tallygate_harness::mixes::mixes;
use tallygate_harness::seed::seed;
use tallygate_harness::server::{Server, ask, connected, key_of, now_us, patient};
use tallygate_harness::stored::log;
use tallygate_lua::{
    BAN, BAN_BYTES, CELL_BYTES, DENIED, ENTRY_BYTES, INTEGER_BYTES, LEASE, LEASE_NAME_BYTES, LONGEST_LOG, OVERRIDE,
    PROTOCOL, REGISTER,
};

const MINUTE: Duration = Duration::from_secs(60);
const MINUTE_US: u64 = 60_000_000;
const DENIALS: u8 = 3;

/// A script that runs for so long never ends.
const ENDLESS: Duration = Duration::from_secs(20);
const ENDLESS_US: u64 = 20_000_000;

/// No number of a tally is as great.
const BEYOND: u64 = 1 << 53;

/// The first bit of a time.
const MARK: u64 = 1 << 55;

/// A policy whose tally is a string, and how many of its bytes are before the log.
struct Limit {
    policy: Policy,
    head: usize,
    /// The label of a second subject.
    label: Option<&'static str>,
}

impl Limit {
    fn new(policy: Policy) -> Self {
        let is_celled = |rule: &&Rule| !matches!(rule.algorithm(), Algorithm::SlidingWindow { .. });
        let cells = policy.rules().iter().filter(is_celled).count();
        let ban = policy.ban().map_or(0, |_| BAN_BYTES + usize::from(DENIALS) * INTEGER_BYTES);
        Self { head: cells * CELL_BYTES + ban, policy, label: None }
    }

    /// Every kind of rule, alone and together.
    fn all() -> Vec<Self> {
        let windows = || Policy::builder("mix").rule(Rule::sliding_window(200, 60 * MINUTE));
        let ban = Ban::new(u64::from(DENIALS), MINUTE, 2 * MINUTE);
        let long = windows().rule(Rule::sliding_window(100, MINUTE)).rule(Rule::duplicate(Duration::from_micros(10)));
        let banning = windows().rule(Rule::fixed_window(2, MINUTE)).ban(ban);
        let only_a_ban = Policy::builder("mix").rule(Rule::sliding_window(2, MINUTE)).ban(ban);
        let others = [windows(), long, banning, only_a_ban].map(|policy| policy.build().unwrap());
        let window = Policy::builder("mix").rule(Rule::sliding_window(3, MINUTE));
        let several = window.rule_on("all", Rule::fixed_window(1 << 40, MINUTE)).build().unwrap();
        let several = Self { policy: several, head: 0, label: Some("all") };
        let windows = windows().rule_on("all", Rule::sliding_window(1 << 30, MINUTE)).build().unwrap();
        let windows = Self { policy: windows, head: 0, label: Some("all") };
        mixes(MINUTE).into_iter().chain(others).map(Self::new).chain([several, windows]).collect()
    }

    fn check<'a>(&'a self, limiter: &'a Limiter, subject: &'a Subject) -> Check<'a> {
        let check = limiter.check(&self.policy, subject);
        self.label.into_iter().fold(check, |check, label| check.subject(label, &Subject::of("all")))
    }

    /// Whether a value cannot be a tally, by its length, by the time of its last call or by a number of its cells. A cell that
    /// is later than now is forgotten, whatever it holds.
    fn excludes(&self, value: &[u8], now_us: u64) -> bool {
        let Some(log) = value.len().checked_sub(self.head) else { return !value.is_empty() };
        let cells = if self.policy.ban().is_some() { 0 } else { self.head };
        let mut cells = (0..cells)
            .step_by(CELL_BYTES)
            .map(|at| [0, 1, 2].map(|number| integer_at(value, at + number * INTEGER_BYTES)));
        let is_beyond =
            |[stamp, amount, before]: [u64; 3]| stamp >= BEYOND || stamp <= now_us && amount.max(before) >= BEYOND;
        let is_late = |log| log > 0 && integer_at(value, value.len() - ENTRY_BYTES) % MARK >= BEYOND;
        log % ENTRY_BYTES > 0 || is_late(log) || cells.any(is_beyond)
    }
}

fn integer_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + INTEGER_BYTES].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// What lies under a key, for a failure to show.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// What is done about a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Call,
    Report,
    Peek,
    Costly,
    /// A call that is sent together with those of others.
    Beside,
    Refund,
    Settle,
    Ban,
    Unban,
}

impl Act {
    const ALL: [Self; 9] = {
        use Act::{Ban, Beside, Call, Costly, Peek, Refund, Report, Settle, Unban};
        [Call, Report, Peek, Costly, Beside, Refund, Settle, Ban, Unban]
    };

    fn is_decided(self) -> bool {
        !matches!(self, Self::Refund | Self::Settle | Self::Ban | Self::Unban)
    }
}

/// A server with forged tallies of one subject.
struct Forgery {
    connection: Connection,
    limiter: Limiter,
    subject: Subject,
    random: fastrand::Rng,
    seed: u64,
    server: Server,
}

impl Forgery {
    async fn start() -> Self {
        let server = Server::start();
        let limiter = connected(&patient().deadline(ENDLESS), &server.url()).await;
        let (seed, subject) = (seed(), Subject::of("s"));
        let random = fastrand::Rng::with_seed(seed);
        Self { connection: server.connection(), limiter, subject, random, seed, server }
    }

    /// Makes calls of the subject; returns the key of its tally, and the bytes that they left there.
    async fn tally(&mut self, limit: &Limit) -> (String, Vec<u8>) {
        for call in 0..self.random.usize(1..70) {
            // The first one fits each limit.
            let cost = if call == 0 { 1 } else { self.random.u64(1..3) };
            drop(limit.check(&self.limiter, &self.subject).cost(cost).await.unwrap());
        }
        let key = key_of(&mut self.connection, "mix", "s");
        let bytes = ask(&mut self.connection, &format!("GET {key}"));
        (key, bytes)
    }

    fn put(&mut self, key: &str, value: &[u8]) {
        redis::cmd("SET").arg(key).arg(value).arg("EX").arg(600).exec(&mut self.connection).unwrap();
    }

    /// Puts a forged tally in place of the subject's, acts, and resets the subject.
    async fn play(&mut self, limit: &Limit, key: &str, value: &[u8], act: Act) {
        let permit = limit.check(&self.limiter, &self.subject).refundable().await.unwrap().into_result().ok();
        self.put(key, value);
        let said = format!("{act:?}, {:?}, seed {}, {}", limit.policy, self.seed, hex(value));
        let done = self.act(limit, act, permit).await;
        if act.is_decided() && limit.excludes(value, now_us(&mut self.connection) - ENDLESS_US) {
            assert!(done.is_err(), "no tally has decided: {said}");
            let after: Vec<u8> = ask(&mut self.connection, &format!("GETRANGE {key} 0 -1"));
            let is_kept = value.len() == after.len() || value.len().abs_diff(limit.head).is_multiple_of(ENTRY_BYTES);
            assert!(is_kept, "what is refused stays as it was: {said}");
        }
        // Once more, whatever that has left.
        let again = [self.act(limit, Act::Report, None).await, self.act(limit, Act::Call, None).await];
        for done in [done].iter().chain(&again) {
            assert!(done.as_ref().err().is_none_or(is_refusal), "{done:?}: {said}");
        }
        limit.check(&self.limiter, &self.subject).reset().await.unwrap();
        assert!(limit.check(&self.limiter, &self.subject).await.unwrap().is_allowed(), "a reset heals: {said}");
    }

    async fn act(&mut self, limit: &Limit, act: Act, permit: Option<Permit>) -> Result<(), BackendError> {
        let check = || limit.check(&self.limiter, &self.subject);
        match (act, permit) {
            (Act::Call, _) => check().await.map(drop),
            (Act::Report, _) => check().report().await.map(drop),
            (Act::Peek, _) => check().peek().report().await.map(drop),
            (Act::Costly, _) => check().cost(2).await.map(drop),
            (Act::Beside, _) => self.call_beside_others(limit).await,
            (Act::Refund, Some(permit)) => permit.refund().await.map(drop),
            (Act::Settle, Some(permit)) => permit.settle(3).await.map(drop),
            (Act::Ban, _) if limit.policy.ban().is_some() => check().ban(MINUTE).await,
            (Act::Unban, _) if limit.policy.ban().is_some() => check().unban().await.map(|_| ()),
            _ => Ok(()),
        }
    }

    async fn call_beside_others(&mut self, limit: &Limit) -> Result<(), BackendError> {
        let mut others = iter::repeat_with(|| Subject::of("other").and(self.random.u64(..)));
        let others: Vec<_> = others.by_ref().take(3).collect();
        let subjects = [&others[0], &self.subject, &others[1], &self.subject, &others[2]];
        let decide = async |subject| limit.check(&self.limiter, subject).await;
        let decisions = join_all(subjects.map(decide)).await;
        for other in [0, 2, 4] {
            assert!(decisions[other].as_ref().is_ok_and(tallygate::Decision::is_allowed), "{decisions:?}");
        }
        decisions.into_iter().try_for_each(|decision| decision.map(drop))
    }

    /// Changes a tally, or invents a value.
    fn forged(&mut self, tally: &[u8], head: usize) -> Vec<u8> {
        let (mut value, length) = (tally.to_vec(), self.random.usize(1..700));
        let at = self.random.usize(..value.len());
        match self.random.u8(..10) {
            0 => value.truncate(at),
            1 => drop(value.drain(..at)),
            2 => value.extend(vec![self.random.u8(..); self.random.usize(1..30)]),
            3 => value.insert(at, self.random.u8(..)),
            4 => value[at] ^= 1 << self.random.u8(..8),
            5 => value = vec![0; length],
            6 => {
                value = iter::repeat_with(|| self.random.u8(..)).take(length).collect();
                // Like times.
                value.iter_mut().step_by(ENTRY_BYTES).for_each(|byte| *byte %= 7);
            }
            7 => value = value.repeat(self.random.usize(2..9)),
            8 => self.set_number(&mut value, head),
            _ => (0..9).for_each(|_| self.set_number(&mut value, head)),
        }
        value
    }

    /// Sets a number of a tally to an extreme one, and the sum behind it.
    fn set_number(&mut self, value: &mut [u8], head: usize) {
        let times = (head..value.len()).step_by(ENTRY_BYTES);
        let places: Vec<_> = (0..head).step_by(INTEGER_BYTES).chain(times).collect();
        let at = places[self.random.usize(..places.len())];
        let number = self.extreme().to_be_bytes();
        value[at..at + INTEGER_BYTES].copy_from_slice(&number[1..]);
        if at >= head {
            let sums = [0, 0, 1, u32::MAX, u32::MAX / 2, self.random.u32(..)];
            let sum = sums[self.random.usize(..sums.len())].to_be_bytes();
            value[at + INTEGER_BYTES..at + ENTRY_BYTES].copy_from_slice(&sum);
        }
    }

    fn extreme(&mut self) -> u64 {
        let now_us = now_us(&mut self.connection);
        let times =
            [now_us - 61 * MINUTE_US, now_us - MINUTE_US / 2, now_us, now_us + 100_000, now_us + 90 * MINUTE_US];
        let numbers = [0, 1, 2, 1 << 26, (1 << 26) + 1, 1 << 32, BEYOND - 1, BEYOND, MARK - 1, MARK, 2 * MARK - 1];
        let all: Vec<_> = times.iter().chain(&times.map(|us| us | MARK)).chain(&numbers).copied().collect();
        all[self.random.usize(..all.len())]
    }
}

/// Whether a call is refused as one whose key holds no tally.
fn is_refusal(error: &BackendError) -> bool {
    error.kind() == BackendErrorKind::Wrong && error.to_string().contains("no tally")
}

#[tokio::test]
async fn whatever_bytes_are_under_a_key_no_script_runs_for_long_and_only_a_tally_decides() {
    let mut forgery = Forgery::start().await;
    for limit in Limit::all() {
        for _ in 0..cases(2, 20) {
            let (key, tally) = forgery.tally(&limit).await;
            for act in Act::ALL.repeat(cases(1, 4)) {
                let value = forgery.forged(&tally, limit.head);
                forgery.play(&limit, &key, &value, act).await;
            }
            forgery.server.ask::<()>("FLUSHALL");
        }
    }
}

#[tokio::test]
async fn a_value_of_any_length_that_is_no_tally_is_refused_and_a_reset_heals_it() {
    let mut forgery = Forgery::start().await;
    for limit in Limit::all() {
        let (key, tally) = forgery.tally(&limit).await;
        let longest = limit.head + 60 * ENTRY_BYTES;
        for length in (1..longest).step_by(cases(71, 3)) {
            for mut value in [vec![0; length], tally.iter().copied().cycle().take(length).collect()] {
                let act = if length % 2 == 0 { Act::Call } else { Act::Peek };
                forgery.play(&limit, &key, &value, act).await;
                // The time of the last call is not long ago.
                if let Some(last) = length.checked_sub(limit.head + ENTRY_BYTES) {
                    let now = now_us(&mut forgery.connection).to_be_bytes();
                    value[limit.head + last..][..INTEGER_BYTES].copy_from_slice(&now[1..]);
                    forgery.play(&limit, &key, &value, act).await;
                }
            }
        }
        forgery.server.ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn a_search_ends_in_a_value_of_which_only_the_end_was_read() {
    let mut forgery = Forgery::start().await;
    let window = Policy::builder("mix").rule(Rule::sliding_window(3, 60 * 24 * MINUTE));
    let limit = Limit::new(window.build().unwrap());
    let (key, _) = forgery.tally(&limit).await;
    for entries in [23, 40, 80, 1_000] {
        for act in Act::ALL {
            let mut value = vec![0; entries * ENTRY_BYTES - 2];
            forgery.play(&limit, &key, &value, act).await;
            // A time in the near future makes even a plain call read more.
            let last = value.len() - ENTRY_BYTES;
            for ahead_us in [0, 60_000, 100_000_000] {
                let last_us = now_us(&mut forgery.connection) + ahead_us;
                value[last..last + INTEGER_BYTES].copy_from_slice(&last_us.to_be_bytes()[1..]);
                forgery.play(&limit, &key, &value, act).await;
            }
        }
    }
}

#[tokio::test]
async fn a_call_is_charged_to_no_subject_if_one_of_them_has_no_tally() {
    let mut forgery = Forgery::start().await;
    let policy = Policy::builder("mix").rule(Rule::sliding_window(200, 60 * MINUTE));
    let policy = policy.rule_on("other", Rule::sliding_window(200, 60 * MINUTE)).build().unwrap();
    let (limiter, subject, other) = (forgery.limiter.clone(), forgery.subject.clone(), Subject::of("other"));
    let call = || limiter.check(&policy, &subject).subject("other", &other);
    assert!(call().await.unwrap().is_allowed());
    let key = |pattern| forgery.server.ask::<Vec<String>>(pattern).pop().unwrap();
    let (own, others) = (key("KEYS *:s"), key("KEYS *:other"));
    let minute_ago_us = now_us(&mut forgery.connection) - MINUTE_US;
    let text = log(&[minute_ago_us; 60]);
    // The length alone shows that this is no log. Its end looks like one.
    redis::cmd("SET").arg(&others).arg(&text[1..]).exec(&mut forgery.connection).unwrap();
    redis::cmd("SET").arg(&own).arg(&text).exec(&mut forgery.connection).unwrap();
    for _ in 0..2 {
        assert!(call().await.is_err_and(|error| is_refusal(&error)));
        assert_eq!(ask::<Vec<u8>>(&mut forgery.connection, &format!("GET {own}")), text);
        assert_eq!(ask::<Vec<u8>>(&mut forgery.connection, &format!("GET {others}")), text[1..]);
    }
}

#[tokio::test]
async fn what_is_longer_than_any_log_admits_nothing() {
    let mut forgery = Forgery::start().await;
    for limit in Limit::all().into_iter().step_by(cases(6, 1)) {
        let (key, _) = forgery.tally(&limit).await;
        for ago_us in [0, 59 * MINUTE_US] {
            let at_us = now_us(&mut forgery.connection) - ago_us;
            let mut value = [vec![0; limit.head], log(&vec![at_us; LONGEST_LOG + 40])].concat();
            for _ in 0..2 {
                forgery.put(&key, &value);
                let check = || limit.check(&forgery.limiter, &forgery.subject);
                let reported = check().report().await;
                assert!(reported.is_err_and(|error| is_refusal(&error)), "{:?}", limit.policy);
                assert!(!check().await.is_ok_and(|call| call.is_allowed()), "{:?}", limit.policy);
                value.push(0);
            }
            limit.check(&forgery.limiter, &forgery.subject).reset().await.unwrap();
        }
        forgery.server.ask::<()>("FLUSHALL");
    }
}

/// Commands that make a key something else.
const FOREIGN: [&str; 9] = [
    "SET KEY text",
    "SETBIT KEY 2000 0",
    "LPUSH KEY a",
    "SADD KEY a",
    "ZADD KEY 1 a inf b -inf c 4503599627370496 d 1e300 e",
    "HSET KEY !version a f b p 99999999999999999999999999999999999999",
    "HSET KEY !version 0 f nan p 1 ",
    "XADD KEY * f v",
    "PFADD KEY a",
];

#[tokio::test]
async fn leases_that_end_whenever_are_counted_or_forgotten() {
    let mut forgery = Forgery::start().await;
    let policy = Policy::builder("mix").rule(Rule::concurrency(2, MINUTE)).build().unwrap();
    let limit = Limit { policy, head: 0, label: None };
    let held = limit.check(&forgery.limiter, &forgery.subject).await.unwrap();
    let key = key_of(&mut forgery.connection, "mix", "s");
    drop(held);
    for _ in 0..cases(20, 500) {
        forgery.server.ask::<()>(&format!("DEL {key}"));
        let mut add = redis::cmd("ZADD");
        add.arg(&key);
        for _ in 0..forgery.random.usize(1..300) {
            let name = vec![forgery.random.u8(..); forgery.random.usize(..2 * LEASE_NAME_BYTES)];
            let score = match forgery.random.u8(..8) {
                0 => "inf".to_owned(),
                1 => "-inf".to_owned(),
                2 => format!("{}.5", now_us(&mut forgery.connection) + 1_000_000),
                3 => "1.7e308".to_owned(),
                _ => forgery.extreme().to_string(),
            };
            add.arg(score).arg([name, forgery.random.u16(..).to_be_bytes().to_vec()].concat());
        }
        add.exec(&mut forgery.connection).unwrap();
        for act in [Act::Peek, Act::Call, Act::Report, Act::Beside] {
            forgery.act(&limit, act, None).await.unwrap();
        }
        limit.check(&forgery.limiter, &forgery.subject).reset().await.unwrap();
    }
}

#[tokio::test]
async fn a_key_of_any_other_type_is_an_answer_of_each_script_and_never_a_call_that_lasts() {
    let mut forgery = Forgery::start().await;
    let mut acts = Act::ALL;
    let concurrency = Policy::builder("mix").rule(Rule::concurrency(2, MINUTE)).build().unwrap();
    for limit in Limit::all().into_iter().chain([Limit { policy: concurrency, head: 0, label: None }]) {
        drop(limit.check(&forgery.limiter, &forgery.subject).await.unwrap());
        let key = key_of(&mut forgery.connection, "mix", "s");
        for foreign in FOREIGN {
            forgery.random.shuffle(&mut acts);
            for &act in &acts[..cases(2, Act::ALL.len())] {
                let permit =
                    limit.check(&forgery.limiter, &forgery.subject).refundable().await.unwrap().into_result().ok();
                forgery.server.ask::<()>(&format!("DEL {key}"));
                forgery.server.ask::<redis::Value>(&foreign.replace("KEY", &key));
                let done = forgery.act(&limit, act, permit).await;
                assert!(done.as_ref().err().is_none_or(is_refusal), "{done:?}: {act:?}, {:?}, {foreign}", limit.policy);
                let is_leases = limit.policy.rules()[0].lease().is_some() && foreign.starts_with("ZADD");
                assert!(!act.is_decided() || done.is_err() || is_leases, "{act:?}, {:?}, {foreign}", limit.policy);
                limit.check(&forgery.limiter, &forgery.subject).reset().await.unwrap();
            }
        }
        forgery.server.ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn lists_that_hold_anything_else_are_an_answer_of_their_scripts() {
    let server = Server::start();
    let mut connection = server.connection();
    connection.set_read_timeout(Some(ENDLESS)).unwrap();
    let name = [b'n'; LEASE_NAME_BYTES];
    let scripts: [(&str, Vec<&[u8]>); 6] = [
        (OVERRIDE, vec![b"v", b"2", b"g", b"text", b"f", b"b"]),
        (OVERRIDE, vec![b"v", b"2", b"f", b""]),
        (REGISTER, vec![b"2", b"60", b"0", b"p", b"description", b"q", b"description"]),
        (DENIED, vec![b"60000", b"2", b"5", b"a", b"7", b"b"]),
        (LEASE, vec![PROTOCOL.as_bytes(), &name, b"60000000", b"120000"]),
        (BAN, vec![PROTOCOL.as_bytes(), b"1", b"3", b"60000000", b"120000"]),
    ];
    for foreign in FOREIGN {
        for (script, arguments) in &scripts {
            server.ask::<()>("DEL k");
            server.ask::<redis::Value>(&foreign.replace("KEY", "k"));
            let answer = redis::cmd("EVAL").arg(script).arg(1).arg("k").arg(arguments).exec(&mut connection);
            let error = answer.err().map(|error| error.to_string()).unwrap_or_default();
            let is_explained = ["WRONGTYPE", "no tally", "not a number", "not a valid float"]
                .iter()
                .any(|words| error.contains(words));
            assert!(error.is_empty() || is_explained, "{error}: {foreign}");
        }
    }
}

#[tokio::test]
async fn a_lease_goes_back_although_another_of_its_call_is_under_a_key_that_holds_something_else() {
    let server = Server::start();
    let mut connection = server.connection();
    server.ask::<()>("SET a text");
    server.ask::<()>("ZADD b 1 nnnnnnnnnnnnnnnn");
    let give_back = [PROTOCOL, "nnnnnnnnnnnnnnnn", "0", "0", "0", "0"];
    let error =
        redis::cmd("EVAL").arg(LEASE).arg(2).arg(&["a", "b"]).arg(&give_back).exec(&mut connection).unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    assert_eq!(server.ask::<u64>("EXISTS b"), 0);
}
