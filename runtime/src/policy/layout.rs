//! The layouts of tallies. Tallies that cannot be read alike have different layouts.

use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{Ban, Rule, format_duration};

use crate::algorithm::{self, Celled, Kept, Window};
use crate::subject::digest32;

/// The most bytes of a slash and the name of a layout.
pub(crate) const LAYOUT_BYTES: usize = 9;

/// The layout of leases. It depends on nothing.
const LEASES: &str = "/leases";

/// Distinguishes a log of weights from a log of units, which earlier versions kept.
const LOG_OF_WEIGHTS: &str = "w";

/// Identifies the layout of a tally: the reach of its log of weights, as in `/w1d`, or with cells a digest of the reach
/// and the cells.
///
/// Policies with one name but different layouts have tallies of their own: a policy with a shorter window would drop
/// calls that the other still counts.
pub(super) fn layout(rules: &[Rule], ban: Option<Ban>) -> String {
    if rules.first().is_some_and(|rule| rule.lease().is_some()) {
        return LEASES.to_owned();
    }
    let reach_us = reach_us(&windows(rules).collect::<Vec<_>>());
    let log = if reach_us == 0 { "" } else { LOG_OF_WEIGHTS };
    let reach = format!("{log}{}", format_duration(Duration::from_micros(reach_us)));
    // The duration of a ban may change, because only the ban's end is stored.
    let banned = ban.map(|ban| format!("!{};{}", ban.denials(), ban.within().as_micros()));
    let tags = cells(rules).map(|(_, cell)| cell.tag());
    let cells: Vec<_> = tags.chain(banned).collect();
    if cells.is_empty() && reach.len() < LAYOUT_BYTES {
        return format!("/{reach}");
    }
    format!("/{:08x}", digest32(&format!("{reach};{}", cells.join(";"))))
}

/// Identifies the layout of a tally whose calls are taken ahead for that time. A process that takes none, or for
/// another time, would drop calls that are still in use, so it has a tally of its own.
pub(super) fn layout_ahead(rules: &[Rule], ban: Option<Ban>, ahead: Duration) -> String {
    match layout(rules, ban) {
        leases if leases == LEASES => leases,
        layout => format!("/{:08x}", digest32(&format!("{layout};+{}", ahead.as_micros()))),
    }
}

/// Identifies the layout of a trial's tally, which differs from that of the enforced rule.
pub(super) fn layout_of_trial(rules: &[Rule]) -> String {
    format!("/{:08x}", digest32(&format!("{};shadow", layout(rules, None))))
}

/// Returns the sliding windows, each with the place of its rule.
pub(super) fn windows(rules: &[Rule]) -> impl Iterator<Item = Window> {
    rules.iter().enumerate().filter_map(|(place, rule)| match algorithm::with(rule, |counting| counting.kept()) {
        Kept::Log(window) => Some(Window { place, ..window }),
        Kept::Cell(_) | Kept::Leases => None,
    })
}

/// Returns the algorithms of the rules with a cell, each with the place of its rule.
pub(super) fn cells(rules: &[Rule]) -> impl Iterator<Item = (usize, Arc<dyn Celled>)> {
    rules.iter().enumerate().filter_map(|(place, rule)| match algorithm::with(rule, |counting| counting.kept()) {
        Kept::Cell(cell) => Some((place, cell)),
        Kept::Log(_) | Kept::Leases => None,
    })
}

/// Returns the length of the longest window.
pub(super) fn reach_us(windows: &[Window]) -> u64 {
    windows.iter().map(|window| window.per_us).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn layout(rules: &[Rule]) -> String {
        super::layout(rules, None)
    }

    #[test]
    fn a_layout_depends_on_the_longest_window_of_the_log() {
        let hour = 60 * MINUTE;
        let one = layout(&[Rule::sliding_window(1, MINUTE), Rule::sliding_window(9, hour)]);
        assert_eq!(one, "/w1h");
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

    #[test]
    fn a_layout_depends_on_the_denials_of_a_ban_and_not_on_its_duration() {
        let rules = [Rule::sliding_window(1, MINUTE)];
        let ban = |denials, hours: u32| super::layout(&rules, Some(Ban::new(denials, MINUTE, hours * 60 * MINUTE)));
        assert_ne!(ban(20, 1), layout(&rules));
        assert_eq!(ban(20, 1), ban(20, 2));
        assert_ne!(ban(20, 1), ban(21, 1));
    }
}
