//! The engine of a simulation: tallies in memory, and a clock that shows the time of each call.

use std::time::{Duration, UNIX_EPOCH};
use std::{iter, slice};

use tallygate_rules::CALLS;

use super::time;
use super::trace::{TraceCall, TraceError, TraceErrorKind, TracePlace};
use crate::call::{Call, CallOptions};
use crate::clock::Clock;
use crate::clock::manual::{ManualClock, RANGE_US};
use crate::decision::{DecidedBy, Decision, Denial, Pausable, PauseSource};
use crate::error::BackendError;
use crate::limiter::CallSubjects;
use crate::micros;
use crate::observe::opaque_debug;
use crate::policy::{Policy, SubjectCost, Trial};
use crate::store::{Memory, Outcome, PauseDue, Pauses};
use crate::subject::SubjectKey;

pub(super) struct Engine {
    policy: Policy,
    clock: ManualClock,
    memory: Memory,
    pauses: Pauses,
    /// Units that only the policy beside this one counts. Their costs are left out.
    ignored: Vec<String>,
    /// How many calls were prepared, including refused ones.
    calls: u64,
}

/// A call that can be decided.
pub(super) struct Ready {
    subjects: CallSubjects,
    cost: u64,
    /// The costs in units, of each group and then of each trial.
    costs: Vec<SubjectCost>,
    pause: Option<Duration>,
    us: u64,
    place: TracePlace,
}

opaque_debug!(Engine, engine => { policy: engine.policy.name(), calls: engine.calls });

impl Engine {
    pub(super) fn new(policy: &Policy) -> Self {
        let clock = ManualClock::starting_at(*RANGE_US.start());
        // Without a bound, because a simulation that forgets subjects would be wrong.
        let memory = Memory::new(Clock::from(&clock), usize::MAX);
        // If calls are taken ahead, the result is a forecast of what Redis decides.
        let policy = policy.stored().map_or(policy, |stored| &stored.policy).clone();
        Self { policy, clock, memory, pauses: Pauses::new(0), ignored: Vec::new(), calls: 0 }
    }

    /// Leaves out the costs in units that only the other policy counts.
    pub(super) fn beside(self, other: &Policy) -> Self {
        let own: Vec<_> = self.policy.units().collect();
        let calls = other.counts_calls().then_some(CALLS);
        let ignored = other.units().filter(|unit| !own.contains(unit)).chain(calls).map(str::to_owned).collect();
        Self { ignored, ..self }
    }

    /// Checks a call. Only the number of calls changes.
    pub(super) fn prepare(&mut self, call: &TraceCall) -> Result<Ready, TraceError> {
        self.calls += 1;
        let place = TracePlace { line: call.line(), call: Some(self.calls) };
        let us = call.time().duration_since(UNIX_EPOCH).map_or(0, micros::from_duration);
        if !RANGE_US.contains(&us) {
            let text = "its time is before 1981 or after 2244; epoch times are in seconds, like 1800000000.25";
            return Err(TraceError::new(TraceErrorKind::Time, place, text));
        }
        let now_us = self.clock.now_us();
        if us < now_us {
            let (earlier, later) = (time::format(us), time::format(now_us));
            let text = format!("it is made at {earlier}, and the call before it at {later}; sort the trace by time");
            return Err(TraceError::new(TraceErrorKind::Order, place, text));
        }
        let mut subjects = CallSubjects::new(&self.policy, call.subject());
        for (label, subject) in &call.others {
            subjects.insert(&self.policy, label, subject);
        }
        let known = subjects.complete(&self.policy).map_err(|mistake| undecided(place, mistake))?;
        if call.pause().is_some()
            && let Err(mistake) = Pausable::new(&self.policy, known.first())
        {
            return Err(refused(TraceErrorKind::Pause, place, mistake));
        }
        if !self.ignored.iter().any(|other| **other == *CALLS) {
            let checked = self.policy.check_cost(call.cost());
            checked.map_err(|mistake| refused(TraceErrorKind::Unit, place, mistake))?;
        }
        let mut units = Vec::new();
        for (unit, cost) in call.units.iter().filter(|(unit, _)| !self.ignored.iter().any(|other| **other == **unit)) {
            let known = self.policy.unit(unit).map_err(|mistake| refused(TraceErrorKind::Unit, place, mistake))?;
            units.extend(known.map(|unit| (unit, *cost)));
        }
        let costs = self.policy.costs(&units);
        Ok(Ready { subjects, cost: call.cost(), costs, pause: call.pause(), us, place })
    }

    pub(super) fn decide(&self, ready: &Ready) -> Result<Decision, TraceError> {
        self.clock.set_us(ready.us);
        let outcome = self.outcome(ready).map_err(|mistake| undecided(ready.place, mistake))?;
        Ok(outcome.decision(ready.call(&self.policy, &[]), DecidedBy::Backend))
    }

    /// Tries an admitted call by each of the rules in shadow, and returns the denials.
    pub(super) fn decide_trials(&self, ready: &Ready) -> Result<Vec<Denial>, TraceError> {
        let subjects = ready.subjects.complete(&self.policy).map_err(|mistake| undecided(ready.place, mistake))?;
        let trials = self.policy.trials().iter().zip(subjects.iter().skip(self.policy.groups().len()));
        let mut denials = Vec::new();
        let costs =
            ready.costs.iter().skip(self.policy.groups().len()).map(slice::from_ref).chain(iter::repeat(&[][..]));
        for ((Trial { policy, .. }, subject), costs) in trials.zip(costs) {
            let call = Call::new(policy, slice::from_ref(subject), ready.options()).with_costs(costs);
            let answer = self.memory.decide(call).map_err(|mistake| undecided(ready.place, mistake))?;
            denials.extend(answer.outcome.decision(call, DecidedBy::Backend).into_result().err());
        }
        Ok(denials)
    }

    fn outcome(&self, ready: &Ready) -> Result<Outcome, BackendError> {
        let subjects = ready.subjects.complete(&self.policy)?;
        let subjects = subjects.get(..self.policy.groups().len()).unwrap_or(subjects);
        let call = ready.call(&self.policy, subjects);
        let Some(id) = call.pause() else { return self.outcome_by_rules(call, subjects) };
        let known = self.pauses.find(id, || ready.us);
        if let Some(paused) = known.filter(|known| known.due != PauseDue::Probe) {
            return Ok(paused.outcome());
        }
        let outcome = self.outcome_by_rules(call, subjects)?;
        // The answer of a call is there before the next call, so one that is tried after a pause is alone.
        match (outcome, ready.pause) {
            (Outcome::Admitted, Some(pause)) => {
                let longest = self.policy.longest_pause().unwrap_or_default();
                self.pauses.say(id, ready.us, micros::rounded_up(pause.min(longest)), PauseSource::default());
            }
            (Outcome::Admitted, None) if known.is_some() => self.pauses.remove(id, ready.us),
            _ => {}
        }
        Ok(outcome)
    }

    fn outcome_by_rules(&self, call: Call<'_>, subjects: &[SubjectKey]) -> Result<Outcome, BackendError> {
        // In memory, a unit has its tally beside that of calls, and is decided as one part of several.
        if let ([subject], [group]) = (subjects, self.policy.groups())
            && group.has_own_entry()
            && let Some(outcome) = self.memory.outcome(&self.policy, subject, call.options.cost)
        {
            return Ok(outcome);
        }
        Ok(self.memory.decide(call)?.outcome)
    }
}

impl Ready {
    /// Returns the call without the rules in shadow.
    fn call<'c>(&'c self, policy: &'c Policy, subjects: &'c [SubjectKey]) -> Call<'c> {
        let costs = self.costs.get(..policy.groups().len()).unwrap_or(&self.costs);
        Call::new(policy, subjects, self.options()).with_costs(costs)
    }

    fn options(&self) -> CallOptions {
        CallOptions { cost: self.cost, ..CallOptions::PLAIN }
    }
}

fn undecided(place: TracePlace, mistake: BackendError) -> TraceError {
    refused(TraceErrorKind::Subject, place, mistake)
}

fn refused(kind: TraceErrorKind, place: TracePlace, mistake: BackendError) -> TraceError {
    TraceError::new(kind, place, mistake.to_string()).with_source(mistake)
}
