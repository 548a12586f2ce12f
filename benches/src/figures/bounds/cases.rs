//! What may take a script longest, at the documented limits.

use std::time::Duration;

use tallygate::{Ban, Policy, PolicyBuilder, Rule, Schedule};

use super::log::Log;

const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// The documented limits.
pub(super) const RULES: u32 = 32;
const COUNT: u64 = 1 << 31;
const DENIALS: u64 = 1_000;
const REFUND_DISTANCE: u64 = 1_024;

/// So many calls at once are gathered as far as they may be.
const MANY: usize = 512;
/// As many subjects as have long tallies.
const SOME: usize = 128;

/// What is measured once.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) policy: Policy,
    /// How many subjects a call has beside the main one; their labels are their numbers.
    pub(super) others: u32,
    pub(super) log: Log,
    pub(super) asked: Asked,
    /// How many calls are made at once, each of a subject of its own.
    pub(super) together: usize,
}

/// What is asked of the server.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Asked {
    Call { cost: u64 },
    Report,
    Refund,
    Ban,
}

/// A kind of calls of scripts, and its cases.
type Kind = (&'static str, fn() -> Vec<Case>);

pub(super) const KINDS: [Kind; 7] = [
    ("decisions", decisions),
    ("reports", reports),
    ("refunds", refunds),
    ("clean-ups", clean_ups),
    ("schedules", schedules),
    ("bans", bans),
    ("batches", batches),
];

const CALL: Asked = Asked::Call { cost: 1 };
/// A call that the largest window denies for half of a full log.
const HALF: Asked = Asked::Call { cost: COUNT - 4_000_000 };
/// A call that a short window denies.
const SEARCHING: Asked = Asked::Call { cost: 3 };

fn decisions() -> Vec<Case> {
    vec![
        Case::of("32 windows on a full log", windows()).log(Log::Live),
        Case::of("a cost that 32 windows deny on a full log", windows())
            .log(Log::Live)
            .asked(Asked::Call { cost: COUNT / 2 }),
        Case::on_subjects("32 subjects with full logs", window).log(Log::Live),
        Case::on_subjects("32 subjects with full logs, denied", window).log(Log::Live).asked(HALF),
        Case::of("the clock set back before a full log", one_window()).log(Log::Future),
        Case::on_subjects("the clock set back before 32 full logs", window).log(Log::Future),
        Case::of("the clock set back amid a full log", one_window()).log(Log::Around),
        Case::on_subjects("the clock set back amid 32 full logs", window).log(Log::Around),
        Case::on_subjects("32 token buckets", bucket),
        Case::on_subjects("32 sliding counters", counter),
    ]
}

fn reports() -> Vec<Case> {
    vec![
        Case::of("32 windows on a full log", windows()).log(Log::Live).asked(Asked::Report),
        Case::on_subjects("32 subjects with full logs", window).log(Log::Live).asked(Asked::Report),
        Case::of("many with 32 windows", windows()).asked(Asked::Report).together(MANY),
        Case::of("many with 32 windows on full logs", windows()).log(Log::Live).asked(Asked::Report).together(SOME),
        Case::of("many with a window on a full log", one_window()).log(Log::Live).asked(Asked::Report).together(SOME),
        Case::on_subjects("many with 32 token buckets", bucket).asked(Asked::Report).together(SOME),
    ]
}

fn refunds() -> Vec<Case> {
    vec![
        Case::of("of a full log", one_window()).log(Log::Behind(0)).asked(Asked::Refund),
        Case::of("from far behind in a full log", one_window()).log(Log::Behind(REFUND_DISTANCE)).asked(Asked::Refund),
        Case::on_subjects("from far behind in 32 full logs", window)
            .log(Log::Behind(REFUND_DISTANCE))
            .asked(Asked::Refund),
        Case::on_subjects("32 token buckets", bucket).asked(Asked::Refund),
    ]
}

fn clean_ups() -> Vec<Case> {
    vec![
        Case::of("of a full log", one_window()).log(Log::Dead),
        Case::on_subjects("of 32 full logs", window).log(Log::Dead),
        Case::of("of many full logs", one_window()).log(Log::Dead).together(SOME),
    ]
}

fn schedules() -> Vec<Case> {
    // Once a minute, each at a second of its own.
    let schedule = |number: u32| {
        let expression = format!("{number} * * * * *");
        Rule::cron(1_000_000, Schedule::parse(&expression, "Asia/Shanghai").expect("a schedule"))
    };
    let on_one = (0..RULES).fold(builder(), |builder, number| builder.rule(schedule(number)));
    vec![
        Case::of("32 on one subject", on_one),
        Case::on_subjects("32 subjects", schedule),
        Case::on_subjects("many with 32 subjects", schedule).together(MANY),
    ]
}

fn bans() -> Vec<Case> {
    let ban = || builder().rule(Rule::sliding_window(1, HOUR)).ban(Ban::new(DENIALS, HOUR, 24 * HOUR));
    vec![
        Case::of("a denial that counts", ban()),
        Case::of("many denials that count", ban()).together(MANY),
        Case::of("a ban by hand", ban()).asked(Asked::Ban),
    ]
}

fn batches() -> Vec<Case> {
    vec![
        Case::of("one window", builder().rule(Rule::sliding_window(100, HOUR))).together(2 * MANY),
        Case::of("two windows", two_windows()).together(2 * MANY),
        Case::of("a window on short logs, denied", short_windows(1)).log(Log::Few).asked(SEARCHING).together(2 * MANY),
        Case::of("two windows on short logs, denied", short_windows(2))
            .log(Log::Few)
            .asked(SEARCHING)
            .together(2 * MANY),
        Case::of("32 windows on short logs, denied", short_windows(RULES))
            .log(Log::Few)
            .asked(SEARCHING)
            .together(MANY),
        Case::of("32 windows", windows()).together(MANY),
        Case::of("a window on full logs", one_window()).log(Log::Live).together(SOME),
        Case::of("a window on full logs, denied", one_window()).log(Log::Live).asked(HALF).together(SOME),
        Case::of("32 windows on full logs", windows()).log(Log::Live).together(SOME),
        Case::of("32 windows on full logs, denied", windows())
            .log(Log::Live)
            .asked(Asked::Call { cost: COUNT / 2 })
            .together(SOME),
        Case::on_subjects("32 subjects", window).together(MANY),
        Case::on_subjects("32 sliding counters", counter).together(MANY),
        Case::on_subjects("32 token buckets", bucket).together(MANY),
        Case::of("the clock set back before many full logs", one_window()).log(Log::Future).together(SOME),
    ]
}

fn builder() -> PolicyBuilder {
    Policy::builder("bench.bounds")
}

/// As many windows as a policy may have, so that none makes another needless.
fn windows() -> PolicyBuilder {
    let window = |number: u32| Rule::sliding_window(COUNT / 2 + 120_000 * u64::from(number), HOUR + number * MINUTE);
    (0..RULES).fold(builder(), |builder, number| builder.rule(window(number)))
}

/// As many windows with the largest counts for which a log is read at once, or slightly smaller ones.
fn short_windows(rules: u32) -> PolicyBuilder {
    let window = |number: u32| Rule::sliding_window(u64::from(RULES - rules + 1 + number), HOUR + number * MINUTE);
    (0..rules).fold(builder(), |builder, number| builder.rule(window(number)))
}

fn one_window() -> PolicyBuilder {
    builder().rule(window(0))
}

fn two_windows() -> PolicyBuilder {
    builder().rule(Rule::sliding_window(100, MINUTE)).rule(Rule::sliding_window(1_000, HOUR))
}

fn window(_: u32) -> Rule {
    Rule::sliding_window(COUNT, HOUR)
}

fn counter(_: u32) -> Rule {
    Rule::sliding_counter(1 << 26, HOUR)
}

fn bucket(_: u32) -> Rule {
    Rule::token_bucket(10, MINUTE)
}

impl Case {
    /// How far the logs reach back.
    pub(super) fn reach_us(&self) -> u64 {
        let longest = self.policy.rules().iter().filter_map(Rule::per).max().unwrap_or_default();
        u64::try_from(longest.as_micros()).expect("a validated window")
    }

    fn of(name: &'static str, policy: PolicyBuilder) -> Self {
        let policy = policy.build().expect("a valid policy");
        Self { name, policy, others: 0, log: Log::AsItIs, asked: CALL, together: 1 }
    }

    /// As many subjects as a policy may have, with a rule each.
    fn on_subjects(name: &'static str, rule: impl Fn(u32) -> Rule) -> Self {
        let others =
            (1..RULES).fold(builder().rule(rule(0)), |builder, label| builder.rule_on(label.to_string(), rule(label)));
        Self { others: RULES - 1, ..Self::of(name, others) }
    }

    fn log(self, log: Log) -> Self {
        Self { log, ..self }
    }

    fn asked(self, asked: Asked) -> Self {
        Self { asked, ..self }
    }

    fn together(self, together: usize) -> Self {
        Self { together, ..self }
    }
}
