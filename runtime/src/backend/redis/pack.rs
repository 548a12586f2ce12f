//! Requests as the script takes them: packed fields, in the order that the header of `decide.lua` gives.

use std::io::Write as _;

use tallygate_lua as lua;
use tallygate_rules::{Algorithm, Role, Rule};

use crate::backend::{Request, as_us};
use crate::policy::group::Group;

/// A log of up to this many hits is read with one command; of a longer one, only the hits that matter.
const TAIL_HITS: usize = 256;

/// How many integers of a tally belong to one cell.
const CELL_INTEGERS: usize = lua::CELL_BYTES / lua::INTEGER_BYTES;

/// Packs one request.
pub(super) fn request(request: &Request<'_>, now_us: u64) -> Vec<u8> {
    let (rules, group) = (request.policy.rules(), request.policy.group());
    let mut packed = Vec::with_capacity(64 + 32 * rules.len());
    packed.extend([byte(request.keys.len()), u8::from(request.report)]);
    integer(&mut packed, request.cost);
    let ticks = ticks(request, now_us);
    subject(&mut packed, rules, group, &ticks);
    packed
}

/// The ticks of each rule that follows a schedule, in the order of the rules.
type Ticks = Vec<std::sync::Arc<[u64]>>;

#[cfg(feature = "cron")]
fn ticks(request: &Request<'_>, now_us: u64) -> Ticks {
    request.policy.ticks().around(now_us).collect()
}

#[cfg(not(feature = "cron"))]
fn ticks(_request: &Request<'_>, _now_us: u64) -> Ticks {
    Vec::new()
}

fn subject(packed: &mut Vec<u8>, rules: &[Rule], group: &Group, ticks: &[std::sync::Arc<[u64]>]) {
    let gaps = ticks.iter().flat_map(|ticks| ticks.windows(2)).map(|pair| pair[1] - pair[0]);
    let longest_us = gaps.fold(group.longest_us, u64::max);
    let want = integers_to_read(group.cells, group.largest);

    packed.push(byte(rules.len()));
    short(packed, group.cells);
    integer(packed, group.largest);
    integer(packed, longest_us);
    short(packed, want);
    // Writing to memory cannot fail. An eighth more than the longest time, which hits may save renewing it for.
    let _ =
        write!(packed, "-{}\0{}\0", want * lua::INTEGER_BYTES, (longest_us + longest_us.div_ceil(8)).div_ceil(1_000));

    let mut ticks = ticks.iter();
    for rule in rules {
        self::rule(packed, rule, &mut ticks);
    }
}

/// How much of the end of a tally is worth reading at once: all of it, unless the log is long.
fn integers_to_read(cells: usize, largest: u64) -> usize {
    let head = CELL_INTEGERS * cells;
    let log = match usize::try_from(largest).unwrap_or(usize::MAX) {
        0 => 0,
        // The log alone tells that it is short by being so.
        largest if cells == 0 => largest,
        // Between two clean-ups it grows to twice its largest count; one more tells that it is longer.
        largest => largest.saturating_mul(2).saturating_add(1),
    };
    if log <= TAIL_HITS { head + log } else { head + 1 }
}

fn rule<'a>(packed: &mut Vec<u8>, rule: &Rule, ticks: &mut impl Iterator<Item = &'a std::sync::Arc<[u64]>>) {
    let count = rule.count();
    let mut plain = |kind, span| {
        packed.push(kind);
        integer(packed, count);
        integer(packed, span);
    };
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } if rule.role() == Role::Duplicate => plain(lua::DUPLICATE, as_us(*per)),
        Algorithm::SlidingWindow { per } => plain(lua::SLIDING_WINDOW, as_us(*per)),
        Algorithm::SlidingCounter { per } => plain(lua::SLIDING_COUNTER, as_us(*per)),
        Algorithm::FixedWindow { per } => plain(lua::FIXED_WINDOW, as_us(*per)),
        Algorithm::TokenBucket(bucket) => {
            plain(lua::TOKEN_BUCKET, as_us(bucket.per()));
            integer(packed, bucket.capacity_or(count));
            integer(packed, bucket.initial_or(count));
            integer(packed, as_us(bucket.reset_after_or(count)));
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
