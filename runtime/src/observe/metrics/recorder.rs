//! The recorder of the program: how the metrics are called there, and when it may be told of an event.
//!
//! A recorder is never called while this library holds a lock or initialises something, and never for calls that it
//! makes itself. It may call limited functions, which would wait for the lock, or be counted without end.

use std::cell::Cell;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

use crate::observe::once::ReportedOnce;
use crate::observe::voice::caught;

pub(super) const DECISIONS: &str = "tallygate_decisions_total";
pub(super) const SECONDS: &str = "tallygate_decision_seconds";
pub(super) const CACHED_DENIALS: &str = "tallygate_cached_denials_total";
pub(super) const CONCURRENT_CALLS: &str = "tallygate_concurrent_calls";
pub(super) const PAUSES: &str = "tallygate_pauses_total";
pub(super) const WARNINGS: &str = "tallygate_warnings_total";
pub(super) const LOST_POLICIES: &str = "tallygate_lost_policies_total";
pub(super) const WAITING_CALLS: &str = "tallygate_waiting_calls";
pub(super) const WAITS_REFUSED: &str = "tallygate_waits_refused_total";
pub(super) const CHARGED_UNITS: &str = "tallygate_charged_units_total";
pub(super) const AHEAD_DECISIONS: &str = "tallygate_prefetch_decisions_total";
pub(super) const AHEAD_UNITS: &str = "tallygate_prefetch_units_total";
pub(super) const AHEAD_EARLY_ENDS: &str = "tallygate_prefetch_early_ends_total";
pub(super) const TALLIES: &str = "tallygate_tallies";
pub(super) const REPLACED_SUBJECTS: &str = "tallygate_replaced_subjects_total";
pub(super) const EARLY_DENIALS: &str = "tallygate_early_denials_total";
pub(super) const OVERRIDES: &str = "tallygate_overrides";
pub(super) const UNAPPLIED_FILES: &str = "tallygate_unapplied_files";

thread_local! {
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Calls the recorder, the first time after it was given the descriptions. `None` if this thread is already within such
/// a call, or if the recorder panics.
pub(super) fn tell<T>(event: impl FnOnce() -> T) -> Option<T> {
    if IS_TOLD.try_with(|is_told| is_told.replace(true)) != Ok(false) {
        return None;
    }
    let _end = TellEnd;
    caught(|| {
        describe();
        event()
    })
}

/// Ends a call of the recorder.
struct TellEnd;

impl Drop for TellEnd {
    fn drop(&mut self) {
        _ = IS_TOLD.try_with(|is_told| is_told.set(false));
    }
}

/// Gives the recorder the descriptions once, with the first metric: by then, the program has installed its recorder.
fn describe() {
    static DESCRIBED: ReportedOnce = ReportedOnce::new();
    if DESCRIBED.is_first() {
        describe_counter!(DECISIONS, Unit::Count, "Decisions by policy, rule that denied, outcome and who decided.");
        describe_histogram!(SECONDS, Unit::Seconds, "The time that a decision took, waiting for admission included.");
        describe_counter!(CACHED_DENIALS, Unit::Count, "Denials that this process answered from its cache.");
        describe_gauge!(
            CONCURRENT_CALLS,
            Unit::Count,
            "Concurrent calls in this process that a concurrency limit counts."
        );
        describe_gauge!(WAITING_CALLS, Unit::Count, "Calls in this process that wait for admission.");
        describe_counter!(
            WAITS_REFUSED,
            Unit::Count,
            "Calls that were denied at once although they may wait, by reason."
        );
        describe_counter!(
            CHARGED_UNITS,
            Unit::Count,
            "What calls were charged in units such as tokens, and what settlements added and removed."
        );
        describe_counter!(
            PAUSES,
            Unit::Count,
            "How often the other side, or a program, has asked for a pause, by field."
        );
        describe_counter!(WARNINGS, Unit::Count, "Subjects that came near a limit, by policy and rule.");
        describe_gauge!(TALLIES, Unit::Count, "Tallies in the memory of this process.");
        describe_counter!(
            REPLACED_SUBJECTS,
            Unit::Count,
            "Subjects in the memory of this process that others have replaced."
        );
        describe_counter!(
            EARLY_DENIALS,
            Unit::Count,
            "Denials of calls that would have been admitted without what replaced subjects share."
        );
        describe_gauge!(OVERRIDES, Unit::Count, "Overrides of rules that this process knows of.");
        describe_counter!(LOST_POLICIES, Unit::Count, "Policies that left the file of limits.");
        describe_gauge!(UNAPPLIED_FILES, Unit::Count, "Files of limits that are not in force as they are now.");
        describe_counter!(
            AHEAD_DECISIONS,
            Unit::Count,
            "Decisions of this process by what it has taken ahead from Redis."
        );
        describe_counter!(AHEAD_UNITS, Unit::Count, "What this process has taken ahead, used of it, and given back.");
        describe_counter!(
            AHEAD_EARLY_ENDS,
            Unit::Count,
            "How often a ban or a reset of this process has ended what was taken ahead."
        );
    }
}
