//! Denials per second, from totals.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// The time over which denials are counted. Programs publish them about every ten seconds.
const SPAN: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<String, VecDeque<(Instant, u64)>>);

impl Rates {
    /// Adds the total of a policy's denials.
    pub(super) fn add(&mut self, policy: &str, denials: u64, now: Instant) {
        let known = self.0.entry(policy.to_owned()).or_default();
        // A total falls when an hour ends and its denials are forgotten.
        if known.back().is_some_and(|(_, last)| *last > denials) {
            known.clear();
        }
        known.push_back((now, denials));
        // One older value stays, so that the span is covered.
        while known.get(1).is_some_and(|(second, _)| now.saturating_duration_since(*second) >= SPAN) {
            known.pop_front();
        }
    }

    /// Returns the denials per second; `None` if there are none, or if they are not known for long enough.
    pub(super) fn per_second(&self, policy: &str) -> Option<f64> {
        let known = self.0.get(policy)?;
        let ((from, before), (to, after)) = (known.front()?, known.back()?);
        let time = to.saturating_duration_since(*from);
        if *after == 0 || time.is_zero() {
            return None;
        }
        let denials = u32::try_from(after - before).unwrap_or(u32::MAX);
        Some(f64::from(denials) / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_counted_over_the_last_half_minute() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let mut add = |second, denials| {
            rates.add("p", denials, start + Duration::from_secs(second));
            rates.per_second("p").map(|rate| format!("{rate:.1}"))
        };
        assert_eq!(add(0, 100), None);
        assert_eq!(add(10, 120).as_deref(), Some("2.0"));
        assert_eq!(add(30, 160).as_deref(), Some("2.0"));
        assert_eq!(add(60, 160).as_deref(), Some("0.0"));
        // The hour before is forgotten.
        assert_eq!(add(70, 10), None);
        assert_eq!(add(80, 15).as_deref(), Some("0.5"));
    }

    #[test]
    fn without_denials_nothing_is_known() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        rates.add("p", 0, start);
        rates.add("p", 0, start + SPAN);
        assert_eq!((rates.per_second("p"), rates.per_second("q")), (None, None));
    }
}
