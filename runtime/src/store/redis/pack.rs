//! Requests as the script takes them: packed fields, in the order that the header of `decide.lua` gives.

use std::io::Write as _;

use tallygate_lua as lua;
use tallygate_rules::{Algorithm, MAX_EXACT, Role, Rule};

use crate::micros;
use crate::policy::RuleGroup;
use crate::store::request::Request;

/// A log of up to this many hits is read with one command; of a longer one, only the hits that matter.
const TAIL_HITS: usize = 256;

/// Packs one request.
pub(super) fn request(request: &Request<'_>, now_us: u64) -> Vec<u8> {
    let groups = request.policy.groups();
    let mut packed = Vec::with_capacity(64 + 32 * request.policy.rules().len());
    let report = if request.options.report { lua::REPORT } else { 0 };
    let peek = if request.options.peek { lua::PEEK } else { 0 };
    packed.extend([byte(groups.len()), report | peek]);
    // No rule counts that far: a cost beyond it never fits, and so does its greatest part that does fit in here.
    integer(&mut packed, request.options.cost.min(MAX_EXACT + 1));
    for group in groups {
        subject(&mut packed, group, now_us);
    }
    packed
}

/// The ticks of each rule that follows a schedule, in the order of the rules.
type Ticks = Vec<std::sync::Arc<[u64]>>;

#[cfg(feature = "cron")]
fn ticks(group: &RuleGroup, now_us: u64) -> Ticks {
    group.ticks.around(now_us).collect()
}

#[cfg(not(feature = "cron"))]
fn ticks(_group: &RuleGroup, _now_us: u64) -> Ticks {
    Vec::new()
}

fn subject(packed: &mut Vec<u8>, group: &RuleGroup, now_us: u64) {
    let ticks = ticks(group, now_us);
    let gaps = ticks.iter().flat_map(|ticks| ticks.windows(2)).map(|pair| pair[1] - pair[0]);
    let longest_us = gaps.fold(group.longest_us, u64::max);
    let denials = denials(group);
    let want = integers_to_read(group);

    packed.push(byte(group.rules.len()));
    short(packed, group.celled.len());
    short(packed, denials);
    integer(packed, group.largest);
    integer(packed, group.reach_us);
    short(packed, want);
    // Writing to memory cannot fail.
    let _ = write!(packed, "-{}\0{}\0", want * lua::INTEGER_BYTES, ttl_ms(longest_us));
    if let Some(ban) = &group.ban {
        integer(packed, micros::from_duration(ban.within()));
        integer(packed, micros::from_duration(ban.duration()));
    }
    let mut ticks = ticks.iter();
    for rule in &group.rules {
        self::rule(packed, rule, &mut ticks);
    }
}

/// How long a tally is to live: an eighth more than its longest time, which hits may save renewing it for. Redis takes no
/// TTL of nothing, which somebody may have written into an override.
pub(super) fn ttl_ms(longest_us: u64) -> u64 {
    (longest_us + longest_us.div_ceil(8)).div_ceil(1_000).max(1)
}

/// How many denials lead to a ban, or 0.
pub(super) fn denials(group: &RuleGroup) -> usize {
    group.ban.map_or(0, |ban| usize::try_from(ban.denials()).unwrap_or(usize::MAX))
}

/// How much of the end of a tally is worth reading at once: all of it, unless the log is long.
fn integers_to_read(group: &RuleGroup) -> usize {
    let ban = if group.ban.is_some() { lua::BAN_BYTES / lua::INTEGER_BYTES + denials(group) } else { 0 };
    let head = lua::CELL_BYTES / lua::INTEGER_BYTES * group.celled.len() + ban;
    let log = match usize::try_from(group.largest).unwrap_or(usize::MAX) {
        0 => 0,
        // The log alone tells that it is short by being so.
        largest if head == 0 => largest,
        // Between two clean-ups it grows to twice its largest count; one more tells that it is longer.
        largest => largest.saturating_mul(2).saturating_add(1),
    };
    if log <= TAIL_HITS { head + log } else { head + 1 }
}

fn rule<'a>(packed: &mut Vec<u8>, rule: &Rule, ticks: &mut impl Iterator<Item = &'a std::sync::Arc<[u64]>>) {
    let count = rule.count();
    let mut plain = |kind, span| {
        packed.push(kind);
        // The script divides by a bucket's count. Where it is 0 there is no room for what flows in at any rate.
        integer(packed, if kind == lua::TOKEN_BUCKET { count.max(1) } else { count });
        integer(packed, span);
    };
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } if rule.role() == Role::Duplicate => {
            plain(lua::DUPLICATE, micros::from_duration(*per))
        }
        Algorithm::SlidingWindow { per } => plain(lua::SLIDING_WINDOW, micros::from_duration(*per)),
        Algorithm::SlidingCounter { per } => plain(lua::SLIDING_COUNTER, micros::from_duration(*per)),
        Algorithm::FixedWindow { per } => plain(lua::FIXED_WINDOW, micros::from_duration(*per)),
        Algorithm::TokenBucket(bucket) => {
            plain(lua::TOKEN_BUCKET, micros::from_duration(bucket.per()));
            integer(packed, bucket.capacity_for(count));
            integer(packed, bucket.initial_for(count));
            integer(packed, micros::from_duration(bucket.reset_after_for(count)));
        }
        #[cfg(feature = "cron")]
        Algorithm::Cron { .. } => {
            let ticks: &[u64] = ticks.next().map_or(&[], |ticks| ticks);
            plain(lua::CRON, ticks.len() as u64);
            for &tick in ticks {
                integer(packed, tick);
            }
        }
        // An algorithm that this version of the crate does not know: the script refuses it.
        _ => plain(b'?', 0),
    }
    #[cfg(not(feature = "cron"))]
    let _ = ticks;
}

/// Seven bytes, big endian. Numbers are validated to be below 2^53.
fn integer(packed: &mut Vec<u8>, number: u64) {
    packed.extend(&number.to_be_bytes()[8 - lua::INTEGER_BYTES..]);
}

fn short(packed: &mut Vec<u8>, number: usize) {
    packed.extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
