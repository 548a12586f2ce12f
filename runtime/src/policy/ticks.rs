//! The ticks of a policy's schedules around a time, cached until the time has passed.

use std::sync::{Arc, Mutex};

use tallygate_rules::{Algorithm, Rule, Schedule};

use crate::lock::lock;

/// How many ticks are sent beyond the last one: a schedule of every second is good for this many seconds.
const AHEAD: usize = 8;

/// The ticks of each rule that follows a schedule.
#[derive(Debug)]
pub(crate) struct Ticks {
    rules: Vec<(Schedule, Mutex<Arc<[u64]>>)>,
}

impl Ticks {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let schedules = rules.iter().filter_map(|rule| match rule.algorithm() {
            Algorithm::Cron { schedule } => Some(schedule),
            _ => None,
        });
        Self { rules: schedules.map(|schedule| (schedule.clone(), Mutex::default())).collect() }
    }

    /// Returns the ticks around that time of each rule that follows a schedule, in the order of the rules.
    pub(crate) fn around(&self, now_us: u64) -> impl Iterator<Item = Arc<[u64]>> {
        self.rules.iter().map(move |(schedule, known)| {
            let mut known = lock(known);
            if !are_around(&known, now_us) {
                *known = around(schedule, now_us);
            }
            Arc::clone(&known)
        })
    }
}

/// Whether the time is in the first half of these ticks, which leaves the other half to calls that are late.
fn are_around(ticks: &[u64], now_us: u64) -> bool {
    ticks.first().is_some_and(|&first| first <= now_us) && ticks.get(ticks.len() / 2).is_some_and(|&half| now_us < half)
}

fn around(schedule: &Schedule, now_us: u64) -> Arc<[u64]> {
    let last = schedule.last_tick(now_us).unwrap_or(0);
    // One tick before the last is kept, too: this clock may be a little ahead of the server's.
    let before = last.checked_sub(1).and_then(|us| schedule.last_tick(us));
    let ahead = std::iter::successors(schedule.next_tick(now_us), |&tick| schedule.next_tick(tick)).take(AHEAD);
    before.into_iter().chain([last]).chain(ahead).collect()
}
