//! The log of a tally, and leases, written by hand: filling many of them call by call would take longer than the
//! measurement.

use crate::server::Server;

/// An entry of a log has the time of a call and a surplus: the sum of all weights up to this call, minus 1 for each of
/// them. The first entry is not a call.
const TIME_BYTES: usize = 7;
const ENTRY_BYTES: usize = TIME_BYTES + 4;

/// Added to the time from the first call on that weighs other than 1.
const WEIGHED: u64 = 1 << 55;

/// A call in a log.
#[derive(Clone, Copy)]
pub(crate) struct Logged {
    pub(crate) time_us: u64,
    pub(crate) weight: u32,
}

/// Replaces the log of each tally of the server: only their keys have a slash. The new log is based on the only call in the
/// old one.
pub(crate) fn replace_logs<C: Iterator<Item = Logged>>(server: &Server, log: impl Fn(Logged) -> C) {
    for key in server.ask::<Vec<String>>(&["KEYS", "*/*"]) {
        let tally: Vec<u8> = server.ask(&["GET", &key]);
        let (head, called) = tally.split_at(tally.len() - 2 * ENTRY_BYTES);
        let (time, surplus) = called[ENTRY_BYTES..].split_at(TIME_BYTES);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let weight = u32::try_from(number(surplus) + 1).expect("four bytes");
        let called = Logged { time_us: number(time) % WEIGHED, weight };
        server.set(&key, &[head, &written(log(called))].concat());
    }
}

fn written(log: impl Iterator<Item = Logged>) -> Vec<u8> {
    let mut written = vec![0; ENTRY_BYTES];
    let (mut surplus, mut mark) = (0_u32, 0);
    for Logged { time_us, weight } in log {
        surplus += weight - 1;
        if weight > 1 {
            mark = WEIGHED;
        }
        written.extend(&(mark + time_us).to_be_bytes()[8 - TIME_BYTES..]);
        written.extend(surplus.to_be_bytes());
    }
    written
}

/// Adds leases to a tally of concurrent calls: some that have ended, and some that end within the hour.
pub(crate) fn add_leases(server: &Server, key: &str, ended: u64, held: u64) {
    const ADD: &str = "for lease = 1, tonumber(ARGV[1]) do
        local ends = ARGV[2] + lease
        redis.call('ZADD', KEYS[1], ends, string.format('%016.0f', ends))
    end";
    const HALF_AN_HOUR_US: u64 = 1_800_000_000;
    let now_us = server.now_us();
    for (number, first_us) in [(ended, now_us - HALF_AN_HOUR_US), (held, now_us + HALF_AN_HOUR_US)] {
        server.ask::<()>(&["EVAL", ADD, "1", key, &number.to_string(), &first_us.to_string()]);
    }
}
