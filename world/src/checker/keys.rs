//! What the keys of tallies say.

use tallygate::Rule;

use crate::workload::{Group, PolicyPlan, Scenario};

/// Policy and subject, by number.
pub(super) type Tally = (usize, usize);

/// The policy and the subject of a key, by number.
pub(super) fn tally(scenario: &Scenario, key: &str) -> Option<Tally> {
    let (policy, subject) = parts(key)?;
    let policy = scenario.policies.iter().position(|plan| plan.name == policy)?;
    let digits = subject.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    Some((policy, digits.parse().ok()?))
}

/// The rules that a tally counts.
pub(super) fn find<'s>(scenario: &'s Scenario, key: &str) -> Option<(&'s PolicyPlan, Vec<Rule>)> {
    let (policy, subject) = parts(key)?;
    let policy = scenario.policies.iter().find(|plan| plan.name == policy)?;
    let unit = unit(key);
    let is_meant = |group: &&Group| group.unit == unit && subject.starts_with(group.label.unwrap_or("user"));
    let group = policy.groups.iter().find(is_meant)?;
    Some((policy, policy.stored(group)))
}

/// The policy and the subject of a key.
pub(super) fn parts(key: &str) -> Option<(&str, &str)> {
    let (_, rest) = key.split_once(':')?;
    let (policy, rest) = rest.split_once('/')?;
    // Rules on another subject have a digest of its label.
    let policy = policy.split_once('=').map_or(policy, |(policy, _)| policy);
    let subject = rest.split_once(':')?.1;
    // What lies beside the tally of calls has its key in the place of the subject.
    let whole = subject.strip_prefix('{').and_then(|tag| tag.strip_suffix('}'));
    Some((policy, whole.map_or(subject, |calls| calls.rsplit(':').next().unwrap_or(calls))))
}

/// The unit that a tally counts; `None` for calls.
pub(super) fn unit(key: &str) -> Option<&'static str> {
    // It is in the slot of the tally of calls, or in that of the pause, whose rules have another name.
    let (own, slot) = key.split_once(":{")?;
    let name = |key: &str| key.split_once('/').map(|(name, _)| name.to_owned());
    let of_slot = name(slot).or_else(|| slot.rsplit_once(':').map(|(name, _)| name.to_owned()));
    (name(own) != of_slot && !is_leases(key)).then_some("tokens")
}

/// Whether a key holds a pause, and not a tally.
pub(super) fn is_pause(key: &str) -> bool {
    key.contains("/pause:")
}

/// Whether a tally counts the calls of a main subject, which has the ban.
pub(super) fn is_main(key: &str) -> bool {
    !is_leases(key) && unit(key).is_none() && parts(key).is_some_and(|(_, subject)| subject.starts_with("user"))
}

/// Whether a key holds leases, and not a tally.
pub(super) fn is_leases(key: &str) -> bool {
    key.contains("/leases:")
}
