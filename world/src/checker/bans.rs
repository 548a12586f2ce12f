//! Bans: a subject that was denied too often is banned, and no call of it is admitted until the ban ends.

use std::collections::BTreeMap;
use std::time::Duration;

use super::keys::{find, is_main};
use super::violation::Violation;
use crate::history::{Deed, Entry, Event, Verdict};
use crate::workload::{Scenario, Topology};

const BANNED: &str = "a subject that was denied too often is banned for the duration of the ban";

/// The denials of a subject since it was banned last, and when its ban ends.
#[derive(Default)]
struct Record {
    denials_us: Vec<u64>,
    ends_us: u64,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let is_lost = history.iter().any(|entry| matches!(entry.event, Event::Lost { .. }));
    if is_lost || scenario.topology != Topology::Server {
        return Ok(());
    }
    let mut records: BTreeMap<&str, Record> = BTreeMap::new();
    for entry in history {
        let Event::Done { deed, .. } = &entry.event else { continue };
        match deed {
            Deed::Decided { keys, verdict, at_us, counts_denial, .. } => {
                let Some(key) = keys.iter().find(|key| is_main(key)) else { continue };
                let Some(ban) = find(scenario, key).and_then(|(policy, _)| policy.ban) else { continue };
                let record = records.entry(key).or_default();
                let is_banned = *at_us < record.ends_us;
                if is_banned && matches!(verdict, Verdict::Admitted | Verdict::Denied(_)) {
                    let how = format!("{key} was {verdict} at {at_us}, and is banned until {}", record.ends_us);
                    return Err(Violation { us: entry.us, promise: BANNED, how });
                }
                if *counts_denial && matches!(verdict, Verdict::Denied(_)) {
                    record.deny(*at_us, ban.denials(), ban.within(), ban.duration());
                }
            }
            Deed::Banned { key } => _ = records.remove(key.as_str()),
            Deed::Removed { keys } => keys.iter().for_each(|key| _ = records.remove(key.as_str())),
            Deed::Corrected { .. } | Deed::Paused { .. } | Deed::FoundPaused { .. } | Deed::Probed { .. } => {}
        }
    }
    Ok(())
}

impl Record {
    fn deny(&mut self, at_us: u64, denials: u64, within: Duration, duration: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 2);
        self.denials_us.push(at_us);
        self.denials_us.retain(|denied_us| denied_us + micros(within) > at_us);
        if self.denials_us.len() as u64 >= denials {
            self.denials_us.clear();
            self.ends_us = at_us + micros(duration);
        }
    }
}
