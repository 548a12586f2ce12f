//! When a subject is banned.

use std::time::Duration;

use tallygate::Ban;

use super::tally::is_set_back;

/// The denials of one subject, and its ban.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// In their order.
    times: Vec<u128>,
    /// The start and the end of the ban.
    ban: Option<(u128, u128)>,
}

impl Denials {
    /// Returns when the ban ends, if there is one, unless it is from before the clock was set back.
    pub(super) fn ban_ends(&self, now: u128) -> Option<u128> {
        self.ban.filter(|&(began, ends)| began < ends && !is_set_back(began, now) && now < ends).map(|(_, ends)| ends)
    }

    /// Adds a denial. It leads to a ban if the window that ends now has enough of them.
    pub(super) fn add(&mut self, ban: &Ban, now: u128) {
        self.times.push(now);
        let denials = usize::try_from(ban.denials()).expect("they are few");
        let first = self.times.len().checked_sub(denials).map(|index| self.times[index]);
        if first.is_some_and(|first| first + ban.within().as_micros() > now && !is_set_back(first, now)) {
            self.ban(ban.duration(), now);
        }
    }

    /// Begins a ban, or ends one if the duration is 0. Denials are then counted from zero.
    pub(super) fn ban(&mut self, duration: Duration, now: u128) {
        *self = Self { times: Vec::new(), ban: Some((now, now + duration.as_micros())) };
    }
}
