//! The numbers of this process, over all limiters: tallies, overrides, files that are not in force. They change under locks, and
//! the recorder is told of them without.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use metrics::{counter, gauge};

use super::recorder::{self, tell};

/// All tallies of this process, over all limiters.
static TALLIES: Total =
    Total { name: recorder::TALLIES, number: AtomicUsize::new(0), events: &[&REPLACED_SUBJECTS, &EARLY_DENIALS] };

/// Subjects in the memory of this process that others have replaced.
static REPLACED_SUBJECTS: Events = Events::new(recorder::REPLACED_SUBJECTS);

/// Denials of calls that would have been admitted without what replaced subjects share.
static EARLY_DENIALS: Events = Events::new(recorder::EARLY_DENIALS);

/// All overrides that this process knows, over all limiters.
static OVERRIDES: Total = Total::new(recorder::OVERRIDES);

/// All watched files whose present text is not in force, over all limiters.
static UNAPPLIED_FILES: Total = Total::new(recorder::UNAPPLIED_FILES);

struct Total {
    name: &'static str,
    number: AtomicUsize,
    /// The recorder is told of these events whenever it is told the number.
    events: &'static [&'static Events],
}

/// Events that happen under a lock, and are told later.
struct Events {
    name: &'static str,
    untold: AtomicU64,
    /// Whether it was told, so that it is there before the first event.
    is_told: AtomicBool,
}

impl Total {
    const fn new(name: &'static str) -> Self {
        Self { name, number: AtomicUsize::new(0), events: &[] }
    }

    /// Sets the share of one gauge. Returns whether the number has changed.
    fn count(&self, counted: &mut usize, number: usize) -> bool {
        let before = std::mem::replace(counted, number);
        if number != before {
            self.number.fetch_add(number.wrapping_sub(before), Ordering::SeqCst);
        }
        number != before
    }

    #[allow(clippy::cast_precision_loss, reason = "a gauge is a float, and there are far less than 2^53 of anything")]
    fn show(&self) {
        tell(|| {
            let gauge = gauge!(self.name);
            // If two threads show the number, the later one shows the latest number.
            loop {
                let number = self.number.load(Ordering::SeqCst);
                gauge.set(number as f64);
                if self.number.load(Ordering::SeqCst) == number {
                    break;
                }
            }
        });
        self.events.iter().for_each(|events| events.show());
    }
}

impl Events {
    const fn new(name: &'static str) -> Self {
        Self { name, untold: AtomicU64::new(0), is_told: AtomicBool::new(false) }
    }

    fn add(&self) {
        self.untold.fetch_add(1, Ordering::Relaxed);
    }

    fn show(&self) {
        let untold = self.untold.swap(0, Ordering::Relaxed);
        if untold == 0 && self.is_told.load(Ordering::Relaxed) {
            return;
        }
        match tell(|| counter!(self.name).increment(untold)) {
            Some(()) => self.is_told.store(true, Ordering::Relaxed),
            None => drop(self.untold.fetch_add(untold, Ordering::Relaxed)),
        }
    }
}

/// Counts a denial for what others have left. The caller may hold a lock.
pub(crate) fn count_early_denial() {
    EARLY_DENIALS.add();
}

/// Tells the recorder of early denials, after one was decided.
pub(super) fn show_early_denials() {
    if EARLY_DENIALS.untold.load(Ordering::Relaxed) > 0 {
        EARLY_DENIALS.show();
    }
}

/// Defines a gauge: a number that is part of the metrics of this process as long as the gauge lives.
macro_rules! gauge_type {
    ($(#[$attribute:meta])* $gauge:ident, $number:ident) => {
        $(#[$attribute])*
        #[derive(Debug, Default)]
        pub(crate) struct $gauge {
            counted: usize,
            has_changed: bool,
        }

        impl $gauge {
            /// Sets the number. The metrics show it with the [change](Self::change).
            #[inline]
            pub(crate) fn set(&mut self, number: usize) {
                self.has_changed |= $number.count(&mut self.counted, number);
            }

            /// Returns what has changed since the last such question.
            #[inline]
            pub(crate) fn change(&mut self) -> GaugeChange {
                GaugeChange { total: std::mem::take(&mut self.has_changed).then_some(&$number) }
            }
        }

        impl Drop for $gauge {
            fn drop(&mut self) {
                self.set(0);
                drop(self.change());
            }
        }
    };
}

gauge_type! {
    /// The tallies of one shard.
    TallyGauge, TALLIES
}

impl TallyGauge {
    /// Counts a subject that another has replaced.
    pub(crate) fn count_replaced(&mut self) {
        REPLACED_SUBJECTS.add();
        self.has_changed = true;
    }
}

gauge_type! {
    /// The overrides of one limiter.
    OverrideGauge, OVERRIDES
}
gauge_type! {
    /// Whether the present text of the file that a limiter watches is not in force.
    UnappliedFileGauge, UNAPPLIED_FILES
}

/// A change that is shown when this is dropped. No lock may be held then, because a recorder may call limited
/// functions.
#[must_use]
#[derive(Default)]
pub(crate) struct GaugeChange {
    total: Option<&'static Total>,
}

impl GaugeChange {
    /// Joins two changes of the same gauge.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.total = self.total.take().or(other.total.take());
        self
    }
}

impl Drop for GaugeChange {
    #[inline]
    fn drop(&mut self) {
        if let Some(total) = self.total {
            total.show();
        }
    }
}
