//! The log, the metrics and the spans of decisions: policy, rule and kind, and never the subject.

mod decision;
pub(crate) mod log;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "metrics")]
mod prefetch_metrics;
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
        }

        impl $gauge {
            /// Sets how many there are.
            #[cfg_attr(
                not(feature = "metrics"),
                allow(clippy::unused_self, unused_variables, reason = "without metrics nothing is counted")
            )]
            pub(crate) fn set(&mut self, number: usize) {
                #[cfg(feature = "metrics")]
                metrics::$number.set(&mut self.counted, number);
            }
        }

        #[cfg(feature = "metrics")]
        impl Drop for $gauge {
            fn drop(&mut self) {
                self.set(0);
            }
        }
    };
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
