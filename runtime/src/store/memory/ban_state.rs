//! The denials of a subject, and its ban.

use std::collections::VecDeque;

use tallygate_rules::Ban;

use super::standstill::is_set_back;
use crate::decision::Wait;
use crate::micros;
use crate::policy::RuleGroup;

/// The latest denials of a subject, and its ban.
#[derive(Debug, Default)]
#[allow(clippy::struct_field_names, reason = "the unit is part of the name")]
pub(super) struct BanState {
    /// The times of the latest denials, oldest first: as many as lead to a ban, less one.
    denials_us: VecDeque<u64>,
    began_us: u64,
    ends_us: u64,
}

impl BanState {
    /// A ban of that duration, or none.
    pub(super) fn ban(duration_us: u64, now_us: u64) -> Self {
        match duration_us {
            0 => Self::default(),
            _ => Self { began_us: now_us, ends_us: now_us + duration_us, ..Self::default() },
        }
    }

    /// Returns how long the ban lasts, if there is one, and it is not from before the clock was set back.
    pub(super) fn wait(&self, now_us: u64) -> Option<Wait> {
        (!is_set_back(self.began_us, now_us) && now_us < self.ends_us).then(|| Wait::until(self.ends_us, now_us))
    }

    pub(super) fn deny(&mut self, ban: &Ban, now_us: u64) {
        let within_us = micros::from_duration(ban.within());
        self.denials_us.push_back(now_us);
        while self.denials_us.len() as u64 > ban.denials() {
            self.denials_us.pop_front();
        }
        let oldest = self.denials_us.front().filter(|_| self.denials_us.len() as u64 == ban.denials());
        if oldest.is_some_and(|&oldest| oldest + within_us > now_us && !is_set_back(oldest, now_us)) {
            *self = Self::ban(micros::from_duration(ban.duration()), now_us);
        }
    }

    /// When nothing in here counts any more.
    pub(super) fn expires_us(&self, group: &RuleGroup) -> u64 {
        let within_us = group.ban.map_or(0, |ban| micros::from_duration(ban.within()));
        self.denials_us.back().map_or(0, |last| last + within_us).max(self.ends_us)
    }
}
