//! What the keys of tallies say.

use std::sync::LazyLock;

use blake2::digest::consts::U4;
use blake2::{Blake2s, Digest};
use tallygate::Rule;

use crate::workload::{Group, PolicyPlan, Scenario, UNITS};

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
    let (_, rest) = key.split_once(':')?;
    let digest = rest.split_once('/')?.0.split_once('=')?.1;
    DIGESTS.iter().find(|(known, _)| known == digest).map(|(_, unit)| *unit)
}

/// What stands behind the name of a policy in the keys of its units: a digest of the label and the unit.
static DIGESTS: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
    let digest = |label: &str, unit: &str| {
        let digest = Blake2s::<U4>::digest(format!("{label}\0{unit}").as_bytes());
        format!("{:08x}", digest.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)))
    };
    UNITS.into_iter().flat_map(|unit| ["", "net"].map(|label| (digest(label, unit), unit))).collect()
});

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
