//! The rules of a policy that count one subject, and what their tally needs to know of them.

use std::time::Duration;

use tallygate_rules::{Algorithm, Rule, format_duration};

use crate::backend::as_us;
use crate::key::{LAYOUT_BYTES, digest32};

/// What the tally of one subject needs to know of the rules that count it.
#[derive(Debug)]
pub(crate) struct Group {
    /// How many of the rules are no sliding windows: each has a cell of its own.
    pub(crate) cells: usize,
    /// The largest count of a sliding window, or 0: more units than that are never logged of one call.
    pub(crate) largest: u64,
    /// The longest sliding window, or 0: how far the log reaches back.
    pub(crate) reach_us: u64,
    /// The longest time for which one of the rules remembers a hit, schedules aside.
    pub(crate) longest_us: u64,
    /// Names the layout of the tally.
    pub(crate) layout: String,
}

impl Group {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let longest = rules.iter().map(memory_of).max().unwrap_or_default();
        let cells = rules.iter().filter(|rule| cell_tag(rule).is_some()).count();
        let largest = sliding(rules).map(Rule::count).max().unwrap_or_default();
        Self { cells, largest, reach_us: as_us(reach(rules)), longest_us: as_us(longest), layout: layout(rules) }
    }
}

fn sliding(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(|rule| matches!(rule.algorithm(), Algorithm::SlidingWindow { .. }))
}

fn reach(rules: &[Rule]) -> Duration {
    sliding(rules).filter_map(Rule::per).max().unwrap_or_default()
}

/// How long a rule remembers a hit.
fn memory_of(rule: &Rule) -> Duration {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } | Algorithm::FixedWindow { per } => *per,
        Algorithm::SlidingCounter { per } => 2 * *per,
        Algorithm::TokenBucket(bucket) => {
            let (count, capacity) = (rule.count(), bucket.capacity_or(rule.count()));
            let reset_after = bucket.reset_after_or(count);
            // A full bucket is like an unused one, unless that begins with less.
            if bucket.initial_or(count) == capacity { reset_after.min(bucket.fill_time(count)) } else { reset_after }
        }
        _ => Duration::ZERO,
    }
}

/// Names what decides the meaning of a rule's cell. The count is none of it, so it may change and keep the tally.
fn cell_tag(rule: &Rule) -> Option<String> {
    match rule.algorithm() {
        Algorithm::SlidingCounter { per } => Some(format!("c{}", per.as_micros())),
        Algorithm::FixedWindow { per } => Some(format!("f{}", per.as_micros())),
        Algorithm::TokenBucket(bucket) => Some(format!("b{}", bucket.per().as_micros())),
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => Some(format!("k{}@{}", schedule.expression(), schedule.zone())),
        _ => None,
    }
}

/// Names how long the log of a tally reaches back, as in `/1d`; where there are cells, a digest names that and these.
///
/// Policies of one name but another layout have tallies of their own: one that remembers a shorter time would drop what
/// the other still counts.
fn layout(rules: &[Rule]) -> String {
    let reach = format_duration(reach(rules));
    let cells: Vec<_> = rules.iter().filter_map(cell_tag).collect();
    if cells.is_empty() && reach.len() < LAYOUT_BYTES {
        return format!("/{reach}");
    }
    format!("/{:08x}", digest32(&format!("{reach};{}", cells.join(";"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_layout_depends_on_the_longest_window_of_the_log() {
        let hour = 60 * MINUTE;
        let one = layout(&[Rule::sliding_window(1, MINUTE), Rule::sliding_window(9, hour)]);
        assert_eq!(one, "/1h");
        assert_eq!(one, layout(&[Rule::sliding_window(5, hour), Rule::duplicate(MINUTE)]));
        assert_ne!(one, layout(&[Rule::sliding_window(1, MINUTE)]));
    }

    #[test]
    fn a_layout_depends_on_the_algorithm_and_window_of_each_cell_but_on_no_count() {
        let one = layout(&[Rule::fixed_window(1, MINUTE)]);
        assert_eq!(one.len(), LAYOUT_BYTES);
        assert_eq!(one, layout(&[Rule::fixed_window(2, MINUTE)]));
        assert_ne!(one, layout(&[Rule::fixed_window(1, 2 * MINUTE)]));
        assert_ne!(one, layout(&[Rule::sliding_counter(1, MINUTE)]));
        assert_ne!(one, layout(&[Rule::fixed_window(1, MINUTE), Rule::sliding_window(1, MINUTE)]));
    }
}
