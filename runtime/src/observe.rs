//! The log, the metrics and the spans of decisions: policy, rule and kind, and never the subject.

mod decision;
mod listeners;
pub(crate) mod log;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "metrics")]
mod prefetch_metrics;
#[cfg(feature = "metrics")]
mod recorder;
mod reported_once;
mod rule;
#[cfg(feature = "tracing-spans")]
mod span;
mod voice;
mod wait_refusal;

/// Implements `Debug` by the name of a type, and by its fields that are given, or by values with names: all else may be
/// personal, or mean nothing to a reader.
macro_rules! opaque_debug {
    ($([$($generics:tt)*])? $type:ident $(<$($arguments:tt),*>)? $({ $($field:ident),+ })?) => {
        impl $(<$($generics)*>)? std::fmt::Debug for $type $(<$($arguments),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
    ($type:ident $(<$($arguments:tt),*>)?, $this:ident => { $($name:ident: $value:expr),+ }) => {
        impl std::fmt::Debug for $type $(<$($arguments),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($type))$(.field(stringify!($name), &$value))+.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque_debug;

pub(crate) use self::decision::{DecisionOutcome, Observation, Observed, PrefetchUse, Purpose};
pub(crate) use self::listeners::{has_listeners, note_listener};
pub(crate) use self::reported_once::ReportedOnce;
pub(crate) use self::rule::ObservedRule;
pub(crate) use self::voice::Quiet;
#[cfg(feature = "redis")]
pub(crate) use self::voice::report;
pub(crate) use self::wait_refusal::WaitRefusal;

/// Defines a gauge: a number of things that the metrics of this process include as long as the gauge lives.
macro_rules! gauge {
    ($(#[$attribute:meta])* $gauge:ident, $number:ident) => {
        $(#[$attribute])*
        #[derive(Debug, Default)]
        pub(crate) struct $gauge {
            #[cfg(feature = "metrics")]
            counted: usize,
            #[cfg(feature = "metrics")]
            has_changed: bool,
        }

        impl $gauge {
            /// Sets how many there are. The metrics show it with the [change](Self::change).
            #[cfg_attr(
                not(feature = "metrics"),
                allow(clippy::unused_self, unused_variables, reason = "without metrics nothing is counted")
            )]
            #[inline]
            pub(crate) fn set(&mut self, number: usize) {
                #[cfg(feature = "metrics")]
                {
                    self.has_changed |= metrics::$number.count(&mut self.counted, number);
                }
            }

            /// Returns what has changed since this was asked last.
            #[cfg_attr(
                not(feature = "metrics"),
                allow(clippy::unused_self, reason = "without metrics nothing is counted")
            )]
            #[inline]
            pub(crate) fn change(&mut self) -> GaugeChange {
                GaugeChange {
                    #[cfg(feature = "metrics")]
                    total: std::mem::take(&mut self.has_changed).then_some(&metrics::$number),
                }
            }
        }

        #[cfg(feature = "metrics")]
        impl Drop for $gauge {
            fn drop(&mut self) {
                self.set(0);
                drop(self.change());
            }
        }
    };
}

/// A change that the metrics show once this is dropped: when no lock is held any more, as a recorder may call limited functions.
#[must_use]
#[derive(Default)]
pub(crate) struct GaugeChange {
    #[cfg(feature = "metrics")]
    total: Option<&'static metrics::Total>,
}

impl GaugeChange {
    /// This one and another one of the same gauges.
    #[cfg_attr(
        not(feature = "metrics"),
        allow(unused_mut, unused_variables, reason = "without metrics nothing is counted")
    )]
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        #[cfg(feature = "metrics")]
        {
            self.total = self.total.take().or(other.total.take());
        }
        self
    }
}

impl Drop for GaugeChange {
    #[inline]
    fn drop(&mut self) {
        #[cfg(feature = "metrics")]
        if let Some(total) = self.total {
            total.show();
        }
    }
}

gauge! {
    /// The tallies of one shard.
    TallyGauge, TALLIES
}
gauge! {
    /// The overrides of one limiter.
    OverrideGauge, OVERRIDES
}
/// Begins the metrics of a file that is watched at zero, so that an alert sees its first change.
#[cfg(feature = "config")]
pub(crate) fn file_watched() {
    #[cfg(feature = "metrics")]
    metrics::begin_metrics_of_files();
}

#[cfg(feature = "config")]
gauge! {
    /// Whether the file that a limiter watches is not in force as it is now.
    UnappliedFileGauge, UNAPPLIED_FILES
}
