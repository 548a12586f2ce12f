//! What the guide promises, asserted on a history.

mod attempts;
mod bans;
mod calls;
mod closed;
mod concurrency;
mod counted;
mod denials;
mod drains;
mod forged;
mod handover;
mod keys;
mod parts;
mod pauses;
mod prefetch;
mod settled;
mod slots;
mod standby;
mod tallies;
mod violation;
mod waits;

pub use self::violation::Violation;
use crate::history::{Entry, Event};
use crate::net::Attempt;
use crate::workload::Scenario;

/// Checks all promises.
///
/// # Errors
///
/// The first promise that is broken.
pub fn check(scenario: &Scenario, history: &[Entry], attempts: &[Attempt]) -> Result<(), Violation> {
    forged::check(history)?;
    slots::check(scenario, history)?;
    settled::check(scenario, history)?;
    tallies::check(scenario, history)?;
    counted::check(scenario, history)?;
    prefetch::check(scenario, history)?;
    parts::check(scenario, history)?;
    calls::check(scenario, history)?;
    concurrency::check(scenario, history)?;
    bans::check(scenario, history)?;
    standby::check(scenario, history)?;
    denials::check(scenario, history)?;
    closed::check(scenario, history)?;
    waits::check(scenario, history)?;
    pauses::check(scenario, history)?;
    handover::check(scenario, history)?;
    drains::check(scenario, history)?;
    attempts::check(scenario, history, attempts)?;
    endings(history)
}

/// At the end, all is free again.
fn endings(history: &[Entry]) -> Result<(), Violation> {
    let faults = history.iter().filter_map(|entry| match &entry.event {
        Event::Final { fault: Some(fault) } => Some((entry.us, fault)),
        _ => None,
    });
    match faults.into_iter().next() {
        Some((us, fault)) => {
            Err(Violation { us, promise: "in the end, all limits are full and all keys are gone", how: fault.clone() })
        }
        None => Ok(()),
    }
}
