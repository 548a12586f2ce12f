//! The rules of a policy that count one unit on one subject, with the numbers that a store needs.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::FixedState;
use tallygate_rules::{Ban, RELEASED_LABEL, Rule};

use super::layout::{cells, layout, layout_ahead, layout_of_trial, reach_us, windows};
#[cfg(feature = "cron")]
use crate::algorithm::Ticks;
use crate::algorithm::{self, Celled, Window};
use crate::micros;
use crate::subject::{digest32, escape_name};

/// The most bytes of an equals sign and a digest of the label and the unit. Calls of the main subject have neither.
pub(crate) const LABEL_BYTES: usize = 9;

/// The rules that count one unit on one subject, in one tally.
#[derive(Clone, Debug)]
pub(crate) struct RuleGroup {
    /// The label of the subject; `None` for the main one, which every call has.
    pub(crate) label: Option<Arc<str>>,
    /// The unit that the rules count; `None` for calls.
    pub(crate) unit: Option<Arc<str>>,
    /// In a policy with units, the segment of the tally of calls whose key chooses the slot of a cluster: a subject then
    /// has all its tallies in one slot. For a subject that can be paused, it has no layout, so that any rules find its
    /// pause.
    pub(crate) slot_segment: Option<Arc<str>>,
    /// Whether the group counts calls of the main subject, in a policy without units.
    pub(crate) is_plain: bool,
    pub(crate) rules: Vec<Rule>,
    /// The sliding windows as numbers, so that no decision converts them.
    pub(crate) windows: Vec<Window>,
    /// The rules with a cell of their own as numbers, each with its place.
    pub(crate) celled: Vec<(usize, Arc<dyn Celled>)>,
    /// Whether the group has only sliding windows: no cells, no ban and no leases.
    pub(crate) is_windows: bool,
    /// The length of a lease, if a concurrency limit is the group's only rule.
    pub(crate) lease_us: Option<u64>,
    /// The positions of the rules in the policy.
    pub(crate) positions: Arc<[usize]>,
    /// The ban of the subject, if denials lead to one.
    pub(crate) ban: Option<Ban>,
    /// The largest count of a sliding window, at least 1, or 0 without a sliding window and so without a log. No more
    /// units than that are logged of one call.
    pub(crate) largest: u64,
    /// The smallest count of the sliding windows, where one for duplicates counts nothing.
    pub(crate) smallest: u64,
    /// The length of the longest sliding window, which is how far the log reaches back.
    pub(crate) reach_us: u64,
    /// The longest time for which a hit or a denial counts, without regard to schedules.
    pub(crate) longest_us: u64,
    /// Policy, subject and layout, as they stand in keys.
    pub(crate) segment: Arc<str>,
    pub(crate) entry: GroupEntry,
    pub(crate) traced: Arc<TracedRules>,
    #[cfg(feature = "cron")]
    pub(crate) ticks: Arc<Ticks>,
}

/// The entry in memory with the group's tally of a subject. A unit shares the entry of the subject's calls.
#[derive(Clone, Debug)]
pub(crate) struct GroupEntry {
    /// The segment of the group that the entry is named after, which no policy has if no rule counts calls.
    pub(crate) segment: Arc<str>,
    /// A hash of the segment. No caller can choose the segment, so it needs no seed.
    pub(crate) hash: u64,
    /// The [cells](RuleGroup::cells) of that group, if there is one.
    pub(crate) cells: Option<usize>,
    /// The rules of that group, if there is one.
    pub(crate) traced: Arc<TracedRules>,
}

/// What a tally has to know of its group's rules to leave a trace, and to count one.
#[derive(Debug, Default)]
pub(crate) struct TracedRules {
    pub(crate) celled: Vec<Arc<dyn Celled>>,
    /// The length of the longest sliding window.
    pub(crate) reach_us: u64,
    /// How long a denial counts towards a ban, and how many lead to it; 0 without one.
    pub(crate) within_us: u64,
    pub(crate) denials: u64,
}

impl TracedRules {
    fn new(celled: &[(usize, Arc<dyn Celled>)], reach_us: u64, ban: Option<Ban>) -> Self {
        Self {
            celled: celled.iter().map(|(_, rule)| Arc::clone(rule)).collect(),
            reach_us,
            within_us: ban.map_or(0, |ban| micros::from_duration(ban.within())),
            denials: ban.map_or(0, |ban| ban.denials()),
        }
    }
}

impl GroupEntry {
    fn new(segment: &Arc<str>, cells: Option<usize>, traced: Arc<TracedRules>) -> Self {
        Self { segment: Arc::clone(segment), hash: FixedState::default().hash_one(&**segment), cells, traced }
    }
}

/// The position of a rule in its policy, the label of the subject that it counts, and the rule.
type Placed<'a> = (usize, &'a (Option<String>, Rule));

/// What a group counts: the label of a subject, and a unit.
type Counted<'a> = (Option<&'a String>, Option<&'a str>);

impl RuleGroup {
    /// Groups the enforced rules by the labels of their subjects and by their units: the main subject first, and of each
    /// subject calls first. Concurrency limits have tallies of their own, and come last.
    pub(crate) fn gather(name: &str, rules: &[(Option<String>, Rule)], ban: Option<Ban>) -> Vec<Self> {
        let is_all_shadow = are_all_shadow(rules);
        let enforced = rules.iter().enumerate().filter(|(_, (_, rule))| is_all_shadow || !rule.is_shadow());
        let (leases, counted): (Vec<_>, Vec<_>) = enforced.partition(|(_, (_, rule))| rule.lease().is_some());
        let mut groups = Self::gather_by_label(name, &counted, ban);
        groups.extend(Self::gather_by_label(name, &leases, None));
        if rules.iter().any(|(_, rule)| rule.unit().is_some()) {
            let entries: Vec<_> = groups.iter().map(|group| group.entry_of_calls(name, &groups)).collect();
            for (group, entry) in groups.iter_mut().zip(entries) {
                group.slot_segment = Some(Arc::clone(&entry.segment));
                if group.unit.is_some() {
                    group.entry = entry;
                }
                group.is_plain = false;
            }
        }
        groups
    }

    /// Returns the group of the pauses of the subject with this label: it has no rules.
    pub(super) fn of_pauses(name: &str, label: Option<&String>) -> Self {
        let group = Self::new(name, (label, None), &[], None);
        let names: Arc<str> = names(&group.segment).into();
        let segment: Arc<str> = format!("{names}/pause").into();
        Self { slot_segment: Some(names), ..group }.with_segment(segment)
    }

    /// Keeps the tallies of the subject that can be paused in the slot of its pause.
    pub(super) fn keep_in_slot_of_pause(groups: &mut [Self], pause: &Self) {
        let is_released = |group: &Self| pause.label.is_none() && group.label.as_deref() == Some(RELEASED_LABEL);
        for group in groups.iter_mut().filter(|group| group.label == pause.label || is_released(group)) {
            group.slot_segment.clone_from(&pause.slot_segment);
        }
    }

    /// Returns a group for each trial, with a tally of its own.
    pub(super) fn gather_trials(name: &str, rules: &[(Option<String>, Rule)]) -> Vec<Self> {
        let is_all_shadow = are_all_shadow(rules);
        let trials = rules.iter().enumerate().filter(|(_, (_, rule))| !is_all_shadow && rule.is_shadow());
        let group = |placed: Placed<'_>| {
            let (_, (label, rule)) = placed;
            let group = Self::new(name, (label.as_ref(), rule.unit()), &[placed], None);
            let layout = layout_of_trial(std::slice::from_ref(rule));
            let segment: Arc<str> = format!("{}{layout}", names(&group.segment)).into();
            let slot_segment = group.unit.is_some().then(|| Arc::clone(&segment));
            Self { slot_segment, ..group }.with_segment(segment)
        };
        trials.map(group).collect()
    }

    fn gather_by_label(name: &str, rules: &[Placed<'_>], ban: Option<Ban>) -> Vec<Self> {
        // A ban counts the denials of all units, in the tally of calls.
        let calls = ban.is_some() || rules.iter().any(|(_, (label, rule))| label.is_none() && rule.unit().is_none());
        let mut counted: Vec<Counted<'_>> = calls.then_some((None, None)).into_iter().collect();
        for (_, (label, rule)) in rules {
            let own = (label.as_ref(), rule.unit());
            if !counted.contains(&own) {
                counted.push(own);
            }
        }
        let labels: Vec<_> = counted.iter().map(|(label, _)| *label).collect();
        let first = |label: Option<&String>| labels.iter().position(|other| *other == label);
        counted.sort_by_key(|&(label, unit)| (label.is_some(), first(label), unit.is_some()));
        let of_calls = |of: Counted<'_>| ban.filter(|_| of == (None, None));
        counted.into_iter().map(|counted| Self::new(name, counted, rules, of_calls(counted))).collect()
    }

    fn new(name: &str, counted: Counted<'_>, all: &[Placed<'_>], ban: Option<Ban>) -> Self {
        let mine = all.iter().filter(|(_, (label, rule))| (label.as_ref(), rule.unit()) == counted);
        let (positions, rules): (Vec<_>, Vec<_>) = mine.map(|(at, (_, rule))| (*at, rule.clone())).unzip();
        let (label, unit) = counted;
        let label = label.map(String::as_str);
        let segment: Arc<str> =
            format!("{}{}{}", &*escape_name(name), counted_segment(label, unit), layout(&rules, ban)).into();
        let group = Self {
            label: label.map(Into::into),
            unit: unit.map(Into::into),
            slot_segment: None,
            is_plain: label.is_none() && unit.is_none(),
            entry: GroupEntry::new(&segment, None, Arc::default()),
            traced: Arc::default(),
            segment: Arc::clone(&segment),
            #[cfg(feature = "cron")]
            ticks: Arc::new(Ticks::new(&rules)),
            positions: positions.into(),
            ban,
            rules: Vec::new(),
            windows: Vec::new(),
            celled: Vec::new(),
            is_windows: false,
            lease_us: None,
            largest: 0,
            smallest: 0,
            reach_us: 0,
            longest_us: 0,
        };
        group.with_rules(rules).with_segment(segment)
    }

    /// Returns the group with a tally of its own.
    fn with_segment(self, segment: Arc<str>) -> Self {
        let traced = Arc::new(TracedRules::new(&self.celled, self.reach_us, self.ban));
        Self { entry: GroupEntry::new(&segment, self.cells(), Arc::clone(&traced)), segment, traced, ..self }
    }

    /// Returns the entry of the tally that counts calls of the group's subject, whether or not there is one.
    fn entry_of_calls(&self, name: &str, all: &[Self]) -> GroupEntry {
        let label = self.label.as_deref().filter(|label| *label != RELEASED_LABEL);
        let is_of_calls =
            |group: &&Self| group.label.as_deref() == label && group.unit.is_none() && group.lease_us.is_none();
        let calls = all.iter().find(is_of_calls).map(|group| group.entry.clone());
        calls.unwrap_or_else(|| {
            let segment = format!("{}{}", &*escape_name(name), counted_segment(label, None)).into();
            GroupEntry::new(&segment, None, Arc::default())
        })
    }

    /// Keeps each tally in its slot and entry although an override has changed rules, so that other units keep their counts.
    /// `before` are the groups that an override has changed, `origin` those of the program.
    pub(super) fn keep_places(groups: &mut [Self], name: &str, before: &[Self], origin: &[Self]) {
        for group in groups {
            let same = before.iter().find(|other| other.label == group.label && other.slot_segment.is_some());
            if let Some(same) = same {
                group.slot_segment.clone_from(&same.slot_segment);
            }
            if group.unit.is_some() {
                group.entry = group.entry_of_calls(name, origin);
            }
            if let Some(same) = before.iter().find(|other| other.has_segment(&group.segment)) {
                group.segment = Arc::clone(&same.segment);
                group.entry = same.entry.clone();
            }
        }
    }

    /// Whether the entry in memory is named after this group, as it is unless that counts a unit.
    #[inline]
    pub(crate) fn has_own_entry(&self) -> bool {
        Arc::ptr_eq(&self.entry.segment, &self.segment)
    }

    #[inline]
    pub(crate) fn has_segment(&self, segment: &Arc<str>) -> bool {
        are_equal(&self.segment, segment)
    }

    /// Whether the entry in memory that has the group's tally is named after this segment.
    #[inline]
    pub(crate) fn has_entry_segment(&self, segment: &Arc<str>) -> bool {
        are_equal(&self.entry.segment, segment)
    }

    /// Whether both count the main subject, without leases, and have their tallies in one entry in memory.
    pub(super) fn is_beside(&self, first: &Self) -> bool {
        let counts_main = self.label.is_none() && self.lease_us.is_none();
        counts_main && first.has_entry_segment(&self.entry.segment)
    }

    /// Returns how many cells the tally has; `None` if a log is all that the group needs.
    pub(crate) fn cells(&self) -> Option<usize> {
        (!self.is_windows).then_some(self.celled.len())
    }

    /// Returns the only rule, if it keeps a cell and nothing else decides calls.
    #[inline]
    pub(crate) fn only_cell(&self) -> Option<&dyn Celled> {
        match (&*self.celled, &*self.windows, &self.ban) {
            ([(_, only)], [], None) => Some(&**only),
            _ => None,
        }
    }

    /// Returns the concurrency limit and the length of its leases, in a group of one.
    pub(crate) fn concurrency(&self) -> Option<(&Rule, u64)> {
        Some((self.rules.first()?, self.lease_us?))
    }

    /// Returns the part of the segment before the layout: the policy, and the label if there is one.
    #[cfg(feature = "admin")]
    pub(crate) fn names(&self) -> &str {
        names(&self.segment)
    }

    /// Returns the stored groups, for calls that are taken ahead for that time. `origin` are the groups of the program, whose
    /// stored calls choose the slot of each subject.
    pub(super) fn gather_ahead(name: &str, groups: &[Self], origin: &[Self], ahead: Duration) -> Box<[Self]> {
        let stored_slot = |slot: &Arc<str>| {
            let calls = origin.iter().chain(groups).find(|group| group.has_segment(slot));
            calls.map_or_else(|| Arc::clone(slot), |calls| calls.ahead(name, ahead).segment)
        };
        let stored = |group: &Self| {
            let slot_segment = group.slot_segment.as_ref().map(stored_slot);
            Self { slot_segment, ..group.ahead(name, ahead) }
        };
        groups.iter().map(stored).collect()
    }

    /// Returns the stored group, for calls that are taken ahead for that time. It has other rules and its own tally.
    fn ahead(&self, name: &str, ahead: Duration) -> Self {
        let ahead_or_own = |rule: &Rule| rule.ahead(ahead).unwrap_or_else(|| rule.clone());
        let rules: Vec<_> = self.rules.iter().map(ahead_or_own).collect();
        let layout = layout_ahead(&rules, self.ban, ahead);
        let segment: Arc<str> =
            format!("{}{}{layout}", &*escape_name(name), counted_segment(self.label.as_deref(), self.unit.as_deref()))
                .into();
        self.with_rules(rules).with_segment(segment)
    }

    /// Returns the group with other counts in its rules.
    pub(crate) fn with_rules(&self, rules: Vec<Rule>) -> Self {
        let banned = self.ban.map(|ban| ban.within().max(ban.duration())).unwrap_or_default();
        let longest_us = rules.iter().map(|rule| algorithm::with(rule, |counting| counting.memory_us())).max();
        let windows: Vec<_> = windows(&rules).collect();
        let lease = rules.first().and_then(Rule::lease);
        let celled: Vec<_> = cells(&rules).collect();
        let reach_us = reach_us(&windows);
        // Only the remnants of buckets depend on counts. All others share this, so that counts which calls choose take no room
        // for each subject.
        let traced = if celled.iter().any(|(_, rule)| rule.remnants_are_named()) {
            Arc::new(TracedRules::new(&celled, reach_us, self.ban))
        } else {
            Arc::clone(&self.traced)
        };
        let is_windows = celled.is_empty() && lease.is_none() && self.ban.is_none();
        let smallest = windows.iter().map(|window| if window.is_duplicate { 0 } else { window.count }).min();
        Self {
            is_windows,
            smallest: smallest.unwrap_or_default(),
            lease_us: lease.map(micros::from_duration),
            largest: windows.iter().map(|window| window.count.max(1)).max().unwrap_or_default(),
            reach_us,
            traced,
            longest_us: longest_us.unwrap_or_default().max(micros::from_duration(banned)),
            windows,
            celled,
            rules,
            ..self.clone()
        }
    }
}

/// Whether both segments are equal. Versions of one policy share them, so the pointers usually are.
#[inline]
fn are_equal(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || are_equal_texts(one, other)
}

#[cold]
fn are_equal_texts(one: &str, other: &str) -> bool {
    one == other
}

/// Returns the policy's name in a segment, as it stands in keys.
pub(crate) fn own_name(segment: &str) -> &str {
    // Names escape both signs. By bytes, because each new tally asks for it, and a search for characters costs more.
    let is_end = |byte: &u8| matches!(byte, b'=' | b'/');
    segment.as_bytes().iter().position(is_end).and_then(|end| segment.get(..end)).unwrap_or(segment)
}

/// Whether all rules are in shadow. Then the policy is, and its rules are decided together.
pub(super) fn are_all_shadow(rules: &[(Option<String>, Rule)]) -> bool {
    !rules.is_empty() && rules.iter().all(|(_, rule)| rule.is_shadow())
}

/// Returns the part of a segment before the layout.
pub(crate) fn names(segment: &str) -> &str {
    segment.split_once('/').map_or(segment, |(names, _layout)| names)
}

/// Separates the subjects and the units of one policy, whatever the values of the subjects.
fn counted_segment(label: Option<&str>, unit: Option<&str>) -> String {
    match (label, unit) {
        (None, None) => String::new(),
        (Some(label), None) => format!("={:08x}", digest32(label)),
        // No label contains the separator in this place: labels are names of people.
        (label, Some(unit)) => format!("={:08x}", digest32(&format!("{}\0{unit}", label.unwrap_or_default()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn rules_are_gathered_by_the_subject_they_count_the_main_one_first() {
        let rule = |count| Rule::sliding_window(count, MINUTE);
        let by = |label: &str| Some(label.to_owned());
        let rules = [(by("ip"), rule(1)), (None, rule(2)), (by("all"), rule(3)), (by("ip"), rule(4))];
        let groups = RuleGroup::gather("p", &rules, None);
        let shape: Vec<_> = groups.iter().map(|group| (group.label.as_deref(), &group.positions[..])).collect();
        assert_eq!(shape, [(None, &[1][..]), (Some("ip"), &[0, 3]), (Some("all"), &[2])]);
        assert_eq!(&*groups[0].segment, "p/w1m");
        assert!(groups[1].segment.starts_with("p=") && groups[1].segment.ends_with("/w1m"));
        assert_ne!(groups[1].segment, groups[2].segment);
    }

    #[test]
    fn concurrent_calls_are_counted_apart_and_last() {
        let rule = |count| Rule::sliding_window(count, MINUTE);
        let concurrency = |limit| Rule::concurrency(limit, MINUTE);
        let by = |label: &str| Some(label.to_owned());
        let rules = [(None, concurrency(1)), (by("ip"), concurrency(2)), (None, rule(3)), (by("ip"), rule(4))];
        let groups = RuleGroup::gather("p", &rules, None);
        let shape: Vec<_> = groups.iter().map(|group| (group.label.as_deref(), &group.positions[..])).collect();
        assert_eq!(shape, [(None, &[2][..]), (Some("ip"), &[3]), (None, &[0]), (Some("ip"), &[1])]);
        assert_eq!(groups.iter().map(|group| group.lease_us.is_some()).collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(&*groups[2].segment, "p/leases");
        assert!(groups[3].segment.starts_with("p=") && groups[3].segment.ends_with("/leases"));
    }
}
