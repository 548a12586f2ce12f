//! Numbers of calls in equal parts of the time.

use std::time::Duration;

/// The most parts, an even number.
pub(super) const MOST: u64 = 240;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) admitted: u64,
    pub(super) denied: u64,
}

/// Numbers of calls in equal parts of the time. The parts get longer when there are too many.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    width_s: u64,
    counts: Vec<Count>,
}

impl Default for Bins {
    fn default() -> Self {
        Self { width_s: 1, counts: Vec::new() }
    }
}

impl Bins {
    pub(super) fn add(&mut self, since: Duration, is_admitted: bool) {
        while since.as_secs() / self.width_s >= MOST {
            self.halve();
        }
        let place = usize::try_from(since.as_secs() / self.width_s).unwrap_or_default();
        if self.counts.len() <= place {
            self.counts.resize(place + 1, Count::default());
        }
        if let Some(count) = self.counts.get_mut(place) {
            *(if is_admitted { &mut count.admitted } else { &mut count.denied }) += 1;
        }
    }

    /// Merges every two parts into one.
    fn halve(&mut self) {
        let sum = |pair: &[Count]| Count {
            admitted: pair.iter().map(|count| count.admitted).sum(),
            denied: pair.iter().map(|count| count.denied).sum(),
        };
        self.counts = self.counts.chunks(2).map(sum).collect();
        self.width_s *= 2;
    }

    /// Makes the parts at least as long as `width`, which is a power of 2 in seconds.
    pub(super) fn with_width(mut self, width: Duration) -> Self {
        while self.width() < width {
            self.halve();
        }
        self
    }

    pub(super) fn width(&self) -> Duration {
        Duration::from_secs(self.width_s)
    }

    /// Returns the parts, up to the last call.
    pub(super) fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Returns the number of calls in the fullest part.
    pub(super) fn most(&self) -> u64 {
        self.counts.iter().map(|count| count.admitted + count.denied).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_time_and_keep_their_calls() {
        let mut bins = Bins::default();
        for second in [0, 1, 2, 239] {
            bins.add(Duration::from_secs(second), true);
        }
        assert_eq!((bins.width(), bins.counts().len()), (Duration::from_secs(1), 240));
        bins.add(Duration::from_secs(960), false);
        assert_eq!(bins.width(), Duration::from_secs(8));
        assert_eq!(bins.counts()[0], Count { admitted: 3, denied: 0 });
        assert_eq!((bins.counts()[29].admitted, bins.counts()[120].denied), (1, 1));
        assert_eq!(bins.most(), 3);
        let few = Bins::default().with_width(Duration::from_secs(4));
        assert_eq!((few.width(), few.counts().len()), (Duration::from_secs(4), 0));
    }
}
