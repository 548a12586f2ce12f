//! Packs requests into fields, in the order that the header of `decide.lua` gives.

use std::hash::BuildHasher;
use std::iter;
use std::sync::LazyLock;

use tallygate_lua as lua;
use tallygate_rules::MAX_EXACT;

use crate::algorithm::{self, pack_integer};
use crate::call::{Call, LeaseName, Scope};
use crate::decision::{PauseSource, Recount, Remainder, SOURCE_BYTES};
use crate::micros;
use crate::policy::RuleGroup;
use crate::store::pauses::{PROBE_US, ProbeStep};
use crate::system::{StdRandomState, per_process};

/// A log of at most this many calls is read with one command. Of a longer log, only the entries that matter are read.
const SHORT_LOG: u64 = 32;

// The script for windows tells by the number of bytes that it has read whether a log may be longer.
const _: () = assert!(lua::END_ENTRIES as u64 > SHORT_LOG + 1);

// The script for pauses returns no more of what is stored.
const _: () = assert!(lua::SOURCE_BYTES == SOURCE_BYTES);

/// The most entries of a log that no longer count.
const MOST_SPARE: u64 = 16_384;

per_process! {
    /// A number that differs from that of all other processes. It is random, like the keys of hash tables.
    static PROCESS: LazyLock<u64> = LazyLock::new(|| StdRandomState::default().hash_one("tallygate"));
}

pub(crate) fn request(request: &Call<'_>, now_us: u64) -> Vec<u8> {
    let groups = request.groups();
    let mut packed = Vec::with_capacity(64 + 32 * request.rules());
    packed.extend([byte(groups.len()), asked(request)]);
    let has_costs = !request.costs.is_empty();
    let greatest = (0..request.costs.len()).map(|index| request.cost_at(index)).max();
    cost(&mut packed, greatest.unwrap_or(request.options.cost));
    for (index, group) in groups.iter().enumerate() {
        let ticks = ticks(group, now_us);
        subject(&mut packed, group, &ticks);
        if has_costs {
            if request.pays_later(index) {
                pack_integer(&mut packed, lua::LATER);
            } else {
                cost(&mut packed, request.cost_at(index));
            }
        }
        rules(&mut packed, group, &ticks, request.options.lease);
    }
    packed
}

/// Adds a cost. One above `MAX_EXACT` never fits, because no rule counts that far. It is sent as the least such cost,
/// which has room in the field.
fn cost(packed: &mut Vec<u8>, cost: u64) {
    pack_integer(packed, cost.min(MAX_EXACT + 1));
}

/// Packs the arguments that refund or settle a call, or leave less of a rule. If the call has used the same of all subjects, that
/// is sent once.
pub(crate) fn refund(part: Call<'_>, now_us: u64, admitted_us: u64, recount: &Recount) -> Vec<Vec<u8>> {
    let used = part.groups().iter().enumerate().map(|(index, group)| {
        let charged = part.cost_at(index);
        // What was not charged is charged late, not settled.
        if charged == 0 { 0 } else { recount.used_of(group).unwrap_or(charged) }
    });
    let mut used: Vec<_> = used.collect();
    if let [first, others @ ..] = &*used
        && others.iter().all(|other| other == first)
    {
        used.truncate(1);
    }
    let rule = match recount {
        Recount::Leave(Remainder { place, most, reset_us, .. }) => Some([*place as u64 + 1, *most, *reset_us]),
        Recount::Refund(_) | Recount::Settle(_) => None,
    };
    let head = [request(&part, now_us), number(admitted_us)];
    head.into_iter().chain(used.into_iter().chain(rule.into_iter().flatten()).map(number)).collect()
}

/// Packs the arguments that renew the leases of a call: their name, and the length and the TTL of each.
pub(crate) fn renewal(request: Call<'_>) -> Vec<Vec<u8>> {
    let numbers =
        request.groups().iter().flat_map(|group| [group.lease_us.unwrap_or_default(), ttl_ms(group.longest_us)]);
    let name = lease_name(request.options.lease).to_vec();
    iter::once(name).chain(numbers.map(number)).collect()
}

/// Packs the arguments that ban a subject of this group for this time; 0 ends its ban.
pub(crate) fn ban(group: &RuleGroup, duration_us: u64) -> [Vec<u8>; 4] {
    let ttl_ms = ttl_ms(group.longest_us.max(duration_us));
    [group.celled.len() as u64, denials(group) as u64, duration_us, ttl_ms].map(number)
}

/// Packs the arguments that pause a subject for this time, for no longer than another, and who has said so.
pub(crate) fn pause(length_us: u64, longest_us: u64, source: PauseSource) -> [Vec<u8>; 3] {
    [number(length_us), number(longest_us), source.as_str().into()]
}

/// Packs the arguments of a step of a probe.
pub(crate) fn probe(name: LeaseName, step: ProbeStep) -> [Vec<u8>; 2] {
    let length = match step {
        ProbeStep::Take => number(PROBE_US),
        ProbeStep::GiveBack | ProbeStep::Decline => number(0),
        ProbeStep::Open => "-1".into(),
    };
    [lease_name(Some(name)).into(), length]
}

fn number(number: u64) -> Vec<u8> {
    number.to_string().into()
}

/// Returns the bytes of a lease's name. They are zeros for a call that takes no lease.
pub(crate) fn lease_name(name: Option<LeaseName>) -> [u8; lua::LEASE_NAME_BYTES] {
    name.map_or([0; lua::LEASE_NAME_BYTES], |name| {
        let process: &u64 = &PROCESS;
        (u128::from(*process) << 64 | u128::from(name.number())).to_be_bytes()
    })
}

fn asked(request: &Call<'_>) -> u8 {
    let report = if request.options.report { lua::REPORT } else { 0 };
    let peek = if request.options.peek { lua::PEEK } else { 0 };
    let provisional = if request.options.provisional { lua::PROVISIONAL } else { 0 };
    let scope = match request.scope {
        Scope::Call | Scope::Rest => 0,
        Scope::Part(_) => lua::PART,
        Scope::Denial => lua::PART | lua::DENIAL,
    };
    let units = if request.costs.is_empty() { 0 } else { lua::UNITS };
    let late = if request.options.late { lua::LATE } else { 0 };
    report | peek | provisional | scope | units | late
}

/// The ticks of each cron rule, in the order of the rules.
type TickTimes = Vec<std::sync::Arc<[u64]>>;

#[cfg(feature = "cron")]
fn ticks(group: &RuleGroup, now_us: u64) -> TickTimes {
    group.ticks.around(now_us).collect()
}

#[cfg(not(feature = "cron"))]
fn ticks(_group: &RuleGroup, _now_us: u64) -> TickTimes {
    Vec::new()
}

/// Adds the fields of a subject that stand before its rules.
fn subject(packed: &mut Vec<u8>, group: &RuleGroup, ticks: &TickTimes) {
    let gaps = ticks.iter().flat_map(|ticks| ticks.windows(2)).map(|pair| pair[1] - pair[0]);
    let longest_us = gaps.fold(group.longest_us, u64::max);
    let denials = denials(group);
    let bytes = bytes_to_read(group);

    packed.push(byte(group.rules.len()));
    short(packed, group.celled.len());
    short(packed, denials);
    packed.extend(four(group.largest));
    pack_integer(packed, group.reach_us);
    packed.extend(most_bytes(group).to_be_bytes());
    short(packed, bytes);
    packed.push(b'-');
    decimal(packed, bytes as u64);
    decimal(packed, ttl_ms(longest_us));
    if let Some(ban) = &group.ban {
        pack_integer(packed, micros::from_duration(ban.within()));
        pack_integer(packed, micros::from_duration(ban.duration()));
    }
}

fn rules(packed: &mut Vec<u8>, group: &RuleGroup, ticks: &TickTimes, lease: Option<LeaseName>) {
    let mut ticks = ticks.iter();
    for rule in &group.rules {
        algorithm::with(rule, |counting| counting.pack(packed, &mut ticks));
    }
    if group.lease_us.is_some() {
        packed.extend(lease_name(lease));
    }
}

/// Returns the time to live of a tally in milliseconds. It is longer than the rules count, so that not every hit has to
/// renew it. It is never 0, which Redis refuses: an override may have a window of no length.
pub(crate) fn ttl_ms(longest_us: u64) -> u64 {
    let slack_us = if longest_us <= lua::LONG_SLACK { longest_us } else { longest_us.div_ceil(8) };
    (longest_us + slack_us).div_ceil(1_000).max(1)
}

/// How many denials lead to a ban; 0 if none do.
pub(crate) fn denials(group: &RuleGroup) -> usize {
    group.ban.map_or(0, |ban| usize::try_from(ban.denials()).unwrap_or(usize::MAX))
}

/// How many bytes of a tally come before its log.
fn head_bytes(group: &RuleGroup) -> usize {
    let ban = if group.ban.is_some() { lua::BAN_BYTES + denials(group) * lua::INTEGER_BYTES } else { 0 };
    lua::CELL_BYTES * group.celled.len() + ban
}

/// Whether a tally is read in one command. If not, the script reads its end and searches from there.
pub(crate) fn is_read_whole(group: &RuleGroup) -> bool {
    group.largest <= SHORT_LOG
}

/// How many bytes of the end of a tally are read first: all, unless the log is long.
pub(crate) fn bytes_to_read(group: &RuleGroup) -> usize {
    let head = head_bytes(group);
    let entries = match usize::try_from(group.largest).unwrap_or(usize::MAX) {
        _ if !is_read_whole(group) => lua::END_ENTRIES,
        // One entry more than can matter: it has the sum of the weights before it.
        largest if head == 0 => largest.max(2) + 1,
        // All entries that there can be between two clean-ups, so that the head is read, too.
        _ => usize::try_from(most_entries(group)).unwrap_or(usize::MAX).saturating_add(lua::CLEAN_UP_ENTRIES + 1),
    };
    head.saturating_add(entries.saturating_mul(lua::ENTRY_BYTES))
}

/// The most entries of a log: those that count, and as many that no longer do, up to [`MOST_SPARE`]. If there are more,
/// it is cleaned up.
fn most_entries(group: &RuleGroup) -> u64 {
    let live = group.largest.min(lua::LOG_ENTRIES as u64);
    1 + live + live.min(MOST_SPARE) + 16
}

/// The length in bytes of a tally with the most entries.
pub(crate) fn most_bytes(group: &RuleGroup) -> u32 {
    let log = most_entries(group).saturating_mul(lua::ENTRY_BYTES as u64);
    u32::try_from(log.saturating_add(head_bytes(group) as u64)).unwrap_or(u32::MAX)
}

/// Four bytes, big endian. Validation has ensured that the counts of windows fit.
pub(crate) fn four(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

/// Adds a number in decimal, as commands of the server take it, and its end.
pub(crate) fn decimal(packed: &mut Vec<u8>, number: u64) {
    packed.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    packed.push(0);
}

pub(crate) fn short(packed: &mut Vec<u8>, number: usize) {
    packed.extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_of_one_process_begin_alike_and_are_in_the_order_of_its_calls() {
        let (one, other) = (lease_name(Some(LeaseName::next())), lease_name(Some(LeaseName::next())));
        assert!(one < other && one[..8] == other[..8]);
    }
}
