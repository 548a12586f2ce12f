//! When a subject is banned.

use std::time::Duration;

use tallygate::Ban;

use super::tally::is_set_back;

/// The denials of one subject, and its ban.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// In the order in which they were.
    times: Vec<u128>,
    /// When the ban began, and when it ends.
    ban: Option<(u128, u128)>,
}

impl Denials {
    /// When the ban ends, if there is one, and it is not from before the clock was set back.
    pub(super) fn ban_ends(&self, now: u128) -> Option<u128> {
        self.ban.filter(|&(began, ends)| began < ends && !is_set_back(began, now) && now < ends).map(|(_, ends)| ends)
    }

    /// Adds one. It leads to a ban if so many, this one included, are in the window that ends now.
    pub(super) fn add(&mut self, ban: &Ban, now: u128) {
        self.times.push(now);
        let denials = usize::try_from(ban.denials()).expect("they are few");
        let first = self.times.len().checked_sub(denials).map(|index| self.times[index]);
        if first.is_some_and(|first| first + ban.within().as_micros() > now && !is_set_back(first, now)) {
            self.ban(ban.duration(), now);
        }
    }

    /// Begins a ban, or ends one where it lasts for no time. Denials are counted anew.
    pub(super) fn ban(&mut self, duration: Duration, now: u128) {
        *self = Self { times: Vec::new(), ban: Some((now, now + duration.as_micros())) };
    }
}
