//! Pauses: what a partner says is heard, who was told sends nothing before the end, nor does who asks Redis. After it, one call at a
//! time is tried, and then all go on.

use std::collections::{BTreeMap, BTreeSet};

use tallygate::RejectionKind;
use tallygate_lua as lua;

use super::calls::last_asked;
use super::keys::{Tally, is_main, is_pause, tally};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{Action, CallPlan, Fault, Scenario};

const HEARD: &str = "what the answer of a partner says is heard, and no more than that";
const TOLD: &str = "a process that was told of a pause sends nothing before its end";
const STORED: &str = "once a pause is stored, Redis admits no call of the subject before its end";
const LONGEST: &str = "a pause does not shorten a longer one";
const ENDS: &str = "a subject is open again once a pause has been over for as long as it lasted";
const ONE: &str = "after a pause, one call at a time is tried until one has succeeded";
const FREE: &str = "who was tried after a pause and says nothing lets another call be tried";

/// The timers of tokio count milliseconds.
const ROUNDING_US: u64 = 1_000;

/// How long a call may take to give its place back, where nothing fails.
const BACK_US: u64 = 500_000;

/// How much later than it was said a pause may begin, and so end, where nothing fails.
const LATE_US: u64 = 1_000_000;

/// Clocks differ by less than this part of what they count.
const DRIFT: u64 = 2_000;

/// A pause, by the clock of a process or of a server.
#[derive(Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "the unit is in each name")]
struct Pause {
    since_us: u64,
    ends_us: u64,
    /// For how long one call at a time is tried after it.
    again_us: u64,
}

/// A pause that a server knows of, and the call that is tried after it.
struct Stored {
    pause: Pause,
    place: Option<Place>,
}

/// The place of the one call that is tried.
struct Place {
    name: u128,
    /// When it was taken.
    since_us: u64,
    /// When it is free all the same, by the server's clock.
    until_us: u64,
    /// Whether the call was admitted.
    is_used: bool,
}

/// A call that has begun.
#[derive(Clone, Copy)]
struct Begun<'h> {
    plan: &'h CallPlan,
    local_us: u64,
}

/// What is known so far.
struct Pauses<'h> {
    scenario: &'h Scenario,
    /// Whether no server has lost what it knew, nor another clock.
    are_kept: bool,
    begun: BTreeMap<usize, Begun<'h>>,
    /// The calls that end a pause.
    resuming: BTreeMap<usize, Tally>,
    /// By the clock of the process that was told.
    told: BTreeMap<(usize, Tally), Pause>,
    /// By the clock of the server.
    stored: BTreeMap<Tally, Stored>,
    /// How many calls of each subject have taken the place and may still be on their way to the server: what is stored meanwhile
    /// does not stop them.
    on_way: BTreeMap<Tally, usize>,
    /// The calls of each subject that were admitted and are not over, and when the last one ended or was dropped.
    running: BTreeMap<Tally, (BTreeSet<usize>, u64)>,
    /// When each subject is paused no longer, whoever knows of it.
    over: BTreeMap<Tally, u64>,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let is_kept = |plan: &_| !matches!(plan, Fault::ClockStep(_) | Fault::Forged(_));
    let mut pauses = Pauses {
        scenario,
        are_kept: scenario.faults.iter().all(|plan| is_kept(&plan.fault)),
        begun: BTreeMap::new(),
        resuming: BTreeMap::new(),
        told: BTreeMap::new(),
        stored: BTreeMap::new(),
        on_way: BTreeMap::new(),
        running: BTreeMap::new(),
        over: BTreeMap::new(),
    };
    history.iter().try_for_each(|entry| pauses.see(entry))
}

impl<'h> Pauses<'h> {
    fn see(&mut self, entry: &'h Entry) -> Result<(), Violation> {
        match &entry.event {
            Event::Called { call, plan, local_us } => {
                self.begun.insert(*call, Begun { plan, local_us: *local_us });
                match plan.action {
                    Action::Pause(length_us) => self.tell(plan, *local_us, length_us, entry.us),
                    Action::Resume => {
                        self.resuming.insert(*call, subject(plan));
                        self.forget(subject(plan));
                    }
                    _ => {}
                }
            }
            Event::Heard { call, local_us, said_us, heard_us } => {
                if said_us.is_some_and(|said_us| said_us != heard_us.unwrap_or_default()) {
                    let how = format!("call {call} was told to wait {said_us:?}, and heard {heard_us:?}");
                    return Err(Violation { us: entry.us, promise: HEARD, how });
                }
                if let (Some(length_us), Some(begun)) = (heard_us, self.begun.get(call)) {
                    self.tell(begun.plan, *local_us, *length_us, entry.us);
                }
            }
            Event::Answered { call, local_us, paused_us, answer } => {
                if let Some(ended) = self.resuming.remove(call) {
                    self.forget(ended);
                }
                let Some(&begun) = self.begun.get(call) else { return Ok(()) };
                match answer {
                    Answer::Admitted(_) => {
                        self.running.entry(subject(begun.plan)).or_default().0.insert(*call);
                        self.check_told(*call, begun, (*local_us, *paused_us), entry.us)?;
                    }
                    Answer::Denied { kind: RejectionKind::Paused, retry_us, .. } => {
                        self.check_end(*call, begun.plan, *retry_us, entry.us)?;
                    }
                    _ => {}
                }
            }
            Event::Done { branch: 0, deed, .. } => self.check_deed(deed, entry.us)?,
            Event::Ended { call } | Event::Dropped { call } => {
                if let Some(begun) = self.begun.remove(call) {
                    let (running, ended_us) = self.running.entry(subject(begun.plan)).or_default();
                    // A call that was dropped may have been admitted by the server all the same.
                    if running.remove(call) || matches!(entry.event, Event::Dropped { .. }) {
                        *ended_us = entry.us;
                    }
                }
                if let Some(ended) = self.resuming.remove(call) {
                    self.forget(ended);
                }
            }
            // It begins anew, and knows nothing.
            Event::Killed { process } => {
                self.told.retain(|(told, _), _| told != process);
                let is_of_it = |call: &usize| self.begun.get(call).is_some_and(|begun| begun.plan.process == *process);
                self.resuming.retain(|call, _| !is_of_it(call));
            }
            Event::Lost { .. } | Event::Named { .. } => self.are_kept = false,
            _ => {}
        }
        Ok(())
    }

    /// A process is told by an answer or by hand.
    fn tell(&mut self, plan: &CallPlan, local_us: u64, length_us: u64, us: u64) {
        let partner = self.scenario.policies.get(plan.policy).and_then(|policy| policy.partner.as_ref());
        let Some(length_us) = partner.map(|partner| length_us.min(partner.longest_pause_us)) else { return };
        let before = self.told.get(&(plan.process, subject(plan))).copied();
        let new = Pause::new(local_us, local_us + length_us, before);
        let over_us = self.over.entry(subject(plan)).or_default();
        *over_us = (*over_us).max(us + length_us + new.again_us + length_us / DRIFT);
        if self.resuming.values().any(|resumed| *resumed == subject(plan)) {
            return;
        }
        let told = self.told.entry((plan.process, subject(plan))).or_insert(new);
        if told.ends_us < new.ends_us {
            *told = new;
        }
    }

    /// The pause of a subject was ended.
    fn forget(&mut self, ended: Tally) {
        self.told.retain(|(_, told), _| *told != ended);
    }

    fn check_told(
        &self,
        call: usize,
        Begun { plan, local_us: began_us }: Begun<'_>,
        (local_us, paused_us): (u64, u64),
        us: u64,
    ) -> Result<(), Violation> {
        let policy = self.scenario.policies.get(plan.policy).filter(|_| self.are_kept && plan.action != Action::Peek);
        let told = self.told.get(&(plan.process, subject(plan)));
        let (Some(policy), Some(Pause { since_us, ends_us, .. })) = (policy, told) else { return Ok(()) };
        // One that waits asks again and again, so only its last question can have been on its way.
        let deadline_us = policy.deadline_us.unwrap_or(self.scenario.settings.deadline_us);
        let on_way_us = last_asked(policy) * (deadline_us + ROUNDING_US) + paused_us;
        let asked_us = match plan.action {
            Action::Wait(_) => began_us.max(local_us.saturating_sub(on_way_us)),
            _ => began_us,
        };
        // Redis measures the rest of the pause by its own clock.
        let room_us = ROUNDING_US + (ends_us - since_us) / DRIFT;
        if asked_us <= *since_us || local_us + room_us >= *ends_us {
            return Ok(());
        }
        let how = format!(
            "call {call} was admitted at {local_us}, and process {} was told at {since_us} to wait until {ends_us}",
            plan.process
        );
        Err(Violation { us, promise: TOLD, how })
    }

    fn check_end(&self, call: usize, plan: &CallPlan, retry_us: Option<u64>, us: u64) -> Result<(), Violation> {
        if !self.scenario.is_calm() {
            return Ok(());
        }
        let over_us = self.over.get(&subject(plan)).copied().unwrap_or_default() + LATE_US;
        if us + retry_us.unwrap_or_default() <= over_us {
            return Ok(());
        }
        let how = format!("call {call} was told to wait {retry_us:?}, and the pause is over by {over_us}");
        Err(Violation { us, promise: ENDS, how })
    }

    fn check_deed(&mut self, deed: &Deed, us: u64) -> Result<(), Violation> {
        match deed {
            Deed::Paused { key, at_us, length_us, ends_us } => {
                let Some(paused) = tally(self.scenario, key) else { return Ok(()) };
                let known = self.stored.get(&paused).map(|known| known.pause).filter(|known| known.ends_us > *at_us);
                let due_us = known.map_or(0, |known| known.ends_us).max(at_us + length_us);
                if self.are_kept && *ends_us < due_us {
                    let how = format!("{key} is paused until {ends_us}, and was to be until {due_us}");
                    return Err(Violation { us, promise: LONGEST, how });
                }
                let pause = Pause::new(*at_us, *ends_us, known);
                let over_us = self.over.entry(paused).or_default();
                *over_us = (*over_us).max(us + ends_us.saturating_sub(*at_us) + pause.again_us);
                if known.is_none_or(|known| known.ends_us != *ends_us) {
                    self.stored.insert(paused, Stored { pause, place: None });
                }
                Ok(())
            }
            Deed::Probed { key, name, at_us, length_us, left_us } => {
                self.probe(key, *name, (*at_us, *length_us), *left_us, us)
            }
            Deed::FoundPaused { key, at_us, left_us: ..lua::PROBE } => self.check_place(key, *at_us, us),
            Deed::Removed { keys } => {
                for ended in keys.iter().filter(|key| is_pause(key)).filter_map(|key| tally(self.scenario, key)) {
                    self.stored.remove(&ended);
                    self.forget(ended);
                }
                Ok(())
            }
            Deed::Decided { keys, is_charged: true, is_late: false, verdict: Verdict::Admitted, at_us, .. } => {
                self.check_stored(keys, *at_us, us)
            }
            _ => Ok(()),
        }
    }

    /// A call takes the place, gives it back, or opens the subject.
    fn probe(
        &mut self,
        key: &str,
        name: u128,
        (at_us, length_us): (u64, i64),
        left_us: i64,
        us: u64,
    ) -> Result<(), Violation> {
        let Some(paused) = tally(self.scenario, key) else { return Ok(()) };
        if left_us < lua::PROBE && length_us > 0 {
            return self.check_place(key, at_us, us);
        }
        if left_us == lua::PROBE && length_us > 0 {
            *self.on_way.entry(paused).or_default() += 1;
        }
        let Some(stored) = self.stored.get_mut(&paused) else { return Ok(()) };
        let has_place = stored.place.as_ref().is_some_and(|place| place.name == name);
        match length_us {
            1.. if left_us == lua::PROBE => {
                let until_us = at_us.saturating_add_signed(length_us).min(stored.pause.opens_us());
                let new = Place { name, since_us: us, until_us, is_used: false };
                match stored.place.replace(new) {
                    Some(before) if self.are_kept && at_us < before.until_us => {
                        let how =
                            format!("{name:x} is tried for {key} at {at_us}, and {:x} has the place", before.name);
                        return Err(Violation { us, promise: ONE, how });
                    }
                    _ => {}
                }
            }
            0 if has_place => stored.place = None,
            // Who says that all is well may say it while a new pause is stored.
            ..0 if has_place && left_us == 0 => _ = self.stored.remove(&paused),
            _ => {}
        }
        Ok(())
    }

    /// Another call finds the place taken, which has to be by a call that is under way.
    fn check_place(&self, key: &str, at_us: u64, us: u64) -> Result<(), Violation> {
        let Some(paused) = tally(self.scenario, key) else { return Ok(()) };
        let Some(stored) = self.stored.get(&paused) else { return Ok(()) };
        let Some(place) = &stored.place else {
            let how = format!("a call has the place of {key} at {at_us}, which was given back or never taken");
            return if self.are_kept { Err(Violation { us, promise: FREE, how }) } else { Ok(()) };
        };
        let stops = self.scenario.calls.iter().any(|call| matches!(call.action, Action::Stop(_)));
        if stops || !self.scenario.is_calm_until(us) {
            return Ok(());
        }
        let is_running = match self.running.get(&paused) {
            Some((running, ended_us)) => !running.is_empty() || ended_us + BACK_US > us,
            None => false,
        };
        if is_running || place.since_us + BACK_US > us || place.until_us <= at_us {
            return Ok(());
        }
        let how = format!("{:x} has its place since {}, and no call of {key} is under way", place.name, place.since_us);
        Err(Violation { us, promise: FREE, how })
    }

    fn check_stored(&mut self, keys: &[String], at_us: u64, us: u64) -> Result<(), Violation> {
        // While a slot moves, the pause is asked for before the tallies.
        let is_apart = self.scenario.faults.iter().any(|plan| plan.fault == Fault::Move);
        let main = keys.iter().find(|key| is_main(key)).filter(|_| self.are_kept && !is_apart);
        let paused = main.and_then(|key| tally(self.scenario, key));
        let Some(paused) = paused else { return Ok(()) };
        let Some(stored) = self.stored.get_mut(&paused) else { return Ok(()) };
        // A call that comes once the subject is open was not tried.
        let may_be_tried = at_us < stored.pause.opens_us();
        let on_way = self.on_way.get_mut(&paused).filter(|on_way| may_be_tried && **on_way > 0);
        let was_on_way = on_way.map(|on_way| *on_way -= 1).is_some();
        let Pause { since_us, ends_us, .. } = stored.pause;
        if since_us <= at_us && at_us < ends_us {
            if was_on_way {
                return Ok(());
            }
            let how = format!("{} was admitted at {at_us}, and is paused from {since_us} to {ends_us}", keys.join(" "));
            return Err(Violation { us, promise: STORED, how });
        }
        let is_tried = self.scenario.is_calm() && ends_us <= at_us && at_us < stored.pause.opens_us();
        let is_first = match &mut stored.place {
            Some(place) => !std::mem::replace(&mut place.is_used, true),
            None => false,
        };
        if is_tried && !is_first {
            let how = format!("{} was admitted at {at_us} beside the call that is tried", keys.join(" "));
            return Err(Violation { us, promise: ONE, how });
        }
        Ok(())
    }
}

impl Pause {
    /// A pause that may prolong another one: the time after it gets no shorter by that.
    fn new(since_us: u64, ends_us: u64, before: Option<Self>) -> Self {
        let before_us = before.filter(|before| since_us < before.ends_us).map_or(0, |before| before.again_us);
        Self { since_us, ends_us, again_us: ends_us.saturating_sub(since_us).max(before_us) }
    }

    /// From when on all calls are made again.
    fn opens_us(&self) -> u64 {
        self.ends_us + self.again_us
    }
}

fn subject(plan: &CallPlan) -> Tally {
    (plan.policy, plan.subject)
}
