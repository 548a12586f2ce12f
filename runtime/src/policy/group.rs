//! The rules of a policy that count one subject, and what their tally needs to know of them.

use std::fmt::Write as _;
use std::time::Duration;

use tallygate_rules::{Algorithm, Rule};

use crate::backend::as_us;
use crate::key::digest32;

/// What the tally of one subject needs to know of the rules that count it.
#[derive(Debug)]
pub(crate) struct Group {
    /// How many of the rules are no sliding windows: each has a cell of its own.
    pub(crate) cells: usize,
    /// The longest time for which one of the rules remembers a hit, schedules aside.
    pub(crate) longest_us: u64,
    /// Names the layout of the cells; empty where there are none.
    pub(crate) layout: String,
}

impl Group {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let cells = rules.iter().filter(|rule| cell_tag(rule).is_some()).count();
        Self { cells, longest_us: longest_us(rules), layout: layout(rules) }
    }

    /// Returns what is to be known of the same rules with other counts.
    pub(crate) fn with_counts(&self, rules: &[Rule]) -> Self {
        Self { longest_us: longest_us(rules), layout: self.layout.clone(), ..*self }
    }
}

fn longest_us(rules: &[Rule]) -> u64 {
    as_us(rules.iter().map(memory_of).max().unwrap_or_default())
}

/// How long a rule remembers a hit.
fn memory_of(rule: &Rule) -> Duration {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } | Algorithm::FixedWindow { per } => *per,
        Algorithm::SlidingCounter { per } => 2 * *per,
        Algorithm::TokenBucket(bucket) => {
            // A rule that admits nothing remembers what it admitted while it did.
            let count = rule.count().max(1);
            let capacity = bucket.capacity_or(count);
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

fn layout(rules: &[Rule]) -> String {
    let mut layout = String::new();
    let tags: Vec<_> = rules.iter().filter_map(cell_tag).collect();
    if !tags.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(layout, "/{:08x}", digest32(&tags.join(";")));
    }
    layout
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn sliding_windows_share_one_layout_whatever_their_windows() {
        assert_eq!(layout(&[Rule::sliding_window(1, MINUTE), Rule::duplicate(MINUTE)]), "");
    }

    #[test]
    fn a_layout_depends_on_algorithm_and_window_but_not_on_the_count() {
        let one = layout(&[Rule::fixed_window(1, MINUTE)]);
        assert_eq!(one.len(), 9);
        assert_eq!(one, layout(&[Rule::fixed_window(2, MINUTE), Rule::sliding_window(1, MINUTE)]));
        assert_ne!(one, layout(&[Rule::fixed_window(1, 2 * MINUTE)]));
        assert_ne!(one, layout(&[Rule::sliding_counter(1, MINUTE)]));
    }
}
