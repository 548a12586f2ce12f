//! The number of tallies in this process.

#[cfg(feature = "metrics")]
use super::metrics;

/// Counts the tallies of one shard in this process's metrics, for as long as the shard lives.
#[derive(Debug, Default)]
pub(crate) struct TallyGauge {
    #[cfg(feature = "metrics")]
    counted: usize,
}

impl TallyGauge {
    /// Sets how many tallies there are.
    #[cfg_attr(
        not(feature = "metrics"),
        allow(clippy::unused_self, unused_variables, reason = "without metrics nothing is counted")
    )]
    pub(crate) fn set(&mut self, tallies: usize) {
        #[cfg(feature = "metrics")]
        metrics::set_tallies(&mut self.counted, tallies);
    }
}

#[cfg(feature = "metrics")]
impl Drop for TallyGauge {
    fn drop(&mut self) {
        self.set(0);
    }
}
