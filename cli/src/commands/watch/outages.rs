//! The outages that were seen.

use std::collections::VecDeque;
use std::time::Instant;

use crate::duration;

/// The most outages that are kept once they are over.
const MOST_OVER: usize = 4;

/// The outages that were seen, the latest first.
#[derive(Debug, Default)]
pub(super) struct Outages(VecDeque<WatchedOutage>);

#[derive(Debug)]
struct WatchedOutage {
    place: String,
    reason: String,
    since: Instant,
    /// `None` while it goes on.
    until: Option<Instant>,
}

impl Outages {
    /// Notes whether that place is away now. `problem` says why.
    pub(super) fn note(&mut self, place: &str, problem: Option<&str>, now: Instant) {
        let known = self.0.iter_mut().find(|outage| outage.place == place && outage.until.is_none());
        match (known, problem) {
            (Some(known), Some(reason)) => reason.clone_into(&mut known.reason),
            (Some(known), None) => known.until = Some(now),
            (None, Some(reason)) => {
                let (place, reason) = (place.to_owned(), reason.to_owned());
                self.0.push_front(WatchedOutage { place, reason, since: now, until: None });
            }
            (None, None) => {}
        }
        let mut over = 0;
        self.0.retain(|outage| {
            over += usize::from(outage.until.is_some());
            outage.until.is_none() || over <= MOST_OVER
        });
    }

    /// Returns a line for each outage, and whether it goes on.
    pub(super) fn lines(&self, now: Instant) -> impl Iterator<Item = (bool, String)> {
        self.0.iter().map(move |WatchedOutage { place, reason, since, until }| {
            let lasted = duration::shown(until.unwrap_or(now).saturating_duration_since(*since));
            match until {
                None => (true, format!("{place} is away for {lasted}: {reason}")),
                Some(until) => {
                    let ago = duration::shown(now.saturating_duration_since(*until));
                    (false, format!("{place} was away for {lasted}, until {ago} ago: {reason}"))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_outage_is_shown_while_it_goes_on_and_for_a_while_after_it() {
        let (mut outages, start) = (Outages::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        outages.note("a", None, at(0));
        outages.note("a", Some("no answer"), at(1));
        outages.note("a", Some("no connection"), at(3));
        outages.note("b", Some("no answer"), at(4));
        outages.note("a", None, at(11));
        let lines: Vec<_> = outages.lines(at(71)).collect();
        assert_eq!(lines[0], (true, "b is away for 1m 7s: no answer".to_owned()));
        assert_eq!(lines[1], (false, "a was away for 10s, until 1m ago: no connection".to_owned()));
        for second in 100..110 {
            outages.note("a", (second % 2 == 0).then_some("again"), at(second));
        }
        assert_eq!(outages.lines(at(110)).count(), 1 + MOST_OVER);
    }
}
