//! The calls of a world.

use std::fmt;

use super::amounts::{Amounts, UNITS};
use super::policies::{LARGEST_DIVISOR, PolicyPlan};
use crate::engine::Chance;

/// A call that a process makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPlan {
    /// When, in microseconds.
    pub us: u64,
    /// Who.
    pub process: usize,
    /// Under which policy.
    pub policy: usize,
    /// The number of its subjects.
    pub subject: usize,
    /// What it weighs.
    pub cost: u64,
    /// What it costs in each unit that it names. The other units of its policy are charged when it is over.
    pub units: Amounts,
    /// What else it does.
    pub action: Action,
}

/// What a process does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is decided.
    Decide,
    /// It is decided, with a report.
    Report,
    /// It is only looked whether it would be admitted.
    Peek,
    /// It is refunded after so many microseconds.
    Refund(u64),
    /// It is settled after so many microseconds, for that cost, where its policy counts no units.
    Settle(u64, u64),
    /// It is settled after so many microseconds, for these costs.
    SettleUnits(u64, Amounts),
    /// It uses these amounts, which are metered for so many microseconds.
    Meter(u64, Amounts),
    /// Its permit is held for so many microseconds.
    Hold(u64),
    /// It waits for admission for so many microseconds.
    Wait(u64),
    /// Its caller is gone after so many microseconds.
    Drop(u64),
    /// Its subject is reset.
    Reset,
    /// Its subject is banned for so many microseconds.
    Ban(u64),
    /// Its subject is pardoned.
    Unban,
    /// Its subject is paused for so many microseconds.
    Pause(u64),
    /// The pause of its subject is ended.
    Resume,
    /// An override closes its policy for so many microseconds.
    Close(u64),
    /// An override closes what its policy counts in that unit for so many microseconds.
    CloseUnit(u64, &'static str),
    /// Its process drains its limiter, for so many microseconds at most, and ends. It is started again.
    Stop(u64),
    /// A process applies a file that divides the counts of its policy by that. Where a rule is then without effect, it is refused.
    Apply(u64),
}

pub(super) fn draw(
    seed: u64,
    horizon_us: u64,
    (fewest, most): (u64, u64),
    trip_us: u64,
    processes: usize,
    policies: &[PolicyPlan],
) -> Vec<CallPlan> {
    let mut chance = Chance::new(seed, "calls");
    if policies.is_empty() {
        return Vec::new();
    }
    let (number, subjects) = (chance.spread(fewest, most), chance.index(4) + 1);
    let mut calls = Vec::new();
    while calls.len() < usize::try_from(number).unwrap_or_default() {
        let us = chance.between(0, horizon_us);
        let burst = if chance.happens(0.2) { chance.spread(2, 60) } else { 1 };
        let apart_us = chance.spread(1, 20_000);
        let (policy, subject) = (chance.index(policies.len()), chance.index(subjects));
        calls.extend((0..burst).map(|place| {
            let action = draw_action(&mut chance, &policies[policy], horizon_us);
            let cost = if chance.happens(0.2) { chance.between(0, 9) } else { 1 };
            let process = chance.index(processes);
            CallPlan { us: us + place * apart_us, process, policy, subject, cost, units: Amounts::default(), action }
        }));
    }
    calls.extend(draw_files(seed, horizon_us, processes, policies));
    calls.extend(draw_busy(seed, horizon_us, processes, policies));
    calls.extend(draw_paced(seed, horizon_us, processes, policies));
    draw_units(seed, policies, &mut calls);
    let stops = draw_stops_at_settlements(seed, trip_us, &calls);
    calls.extend(draw_stops(seed, horizon_us, processes).into_iter().chain(stops));
    calls.sort_by_key(|call| call.us);
    calls
}

/// By what chance the amounts of a unit are drawn.
struct UnitChance {
    unit: &'static str,
    amounts: Chance,
    zeros: Chance,
}

impl UnitChance {
    /// What a call costs: some pay afterwards, and some cost nothing.
    fn cost(&mut self, (free, most): (f64, u64)) -> Option<u64> {
        if self.amounts.happens(free) {
            return self.zeros.happens(0.4).then_some(0);
        }
        Some(self.amounts.spread(1, most))
    }
}

/// Draws what calls cost in units, where their policies count them.
fn draw_units(seed: u64, policies: &[PolicyPlan], calls: &mut [CallPlan]) {
    let chance = |purpose: &str| Chance::new(seed, purpose);
    let mut units = UNITS.map(|unit| UnitChance { unit, amounts: chance(unit), zeros: chance(&format!("no {unit}")) });
    let (mut of_meters, mut of_settled) = (chance("use by meters"), chance("settled units"));
    let mut of_overrides = chance("overrides of units");
    let has_meters = of_meters.happens(0.5);
    for call in calls.iter_mut().filter(|call| policies[call.policy].has_units()) {
        let policy = &policies[call.policy];
        let mut counted: Vec<_> = units.iter_mut().filter(|chance| policy.counts(chance.unit)).collect();
        // Of what is taken ahead, a call uses little.
        let (free, most) = if policy.prefetch_us.is_some() { (0.1, 60) } else { (0.3, 600) };
        call.units = counted.iter_mut().map(|chance| (chance.unit, chance.cost((free, most)))).collect();
        match call.action {
            Action::Close(us) if of_overrides.happens(0.6) => {
                let units: Vec<_> = policy.units_of_users().collect();
                if !units.is_empty() {
                    call.action = Action::CloseUnit(us, of_overrides.pick(&units));
                }
            }
            Action::Settle(later_us, _) => {
                // Of two units, one may be settled alone.
                let alone = (counted.len() > 1 && of_settled.happens(0.7)).then(|| of_settled.index(counted.len()));
                let used = counted.iter_mut().enumerate().map(|(place, chance)| {
                    let used = chance.amounts.spread(1, most);
                    (chance.unit, Some(used).filter(|_| alone.is_none_or(|alone| alone == place)))
                });
                let used = used.collect();
                let is_metered = has_meters && of_meters.happens(0.6);
                call.action =
                    if is_metered { Action::Meter(later_us, used) } else { Action::SettleUnits(later_us, used) };
            }
            _ => {}
        }
    }
}

/// Draws processes that end as they should.
fn draw_stops(seed: u64, horizon_us: u64, processes: usize) -> Vec<CallPlan> {
    let mut chance = Chance::new(seed, "ends of processes");
    let number = if chance.happens(0.15) { chance.between(1, 4) } else { 0 };
    let stops = (0..number).map(|_| {
        let (us, process) = (chance.between(0, horizon_us), chance.index(processes));
        CallPlan::stop(us, process, &mut chance)
    });
    stops.collect()
}

/// Draws processes that end while a settlement is on its way: about so many trips after its call began as the call and the
/// settlement take.
fn draw_stops_at_settlements(seed: u64, trip_us: u64, calls: &[CallPlan]) -> Vec<CallPlan> {
    let mut chance = Chance::new(seed, "ends at settlements");
    let metered = calls.iter().filter_map(|call| match call.action {
        Action::Meter(later_us, _) => Some((call.us + later_us, call.process)),
        _ => None,
    });
    let metered: Vec<_> = metered.collect();
    let number = if !metered.is_empty() && chance.happens(0.5) { chance.between(1, 4) } else { 0 };
    let stops = (0..number).map(|_| {
        let (end_us, process) = chance.pick(&metered);
        let us = end_us + chance.between(2 * trip_us, 5 * trip_us);
        CallPlan::stop(us, process, &mut chance)
    });
    stops.collect()
}

/// Draws files that processes apply, each on its own.
fn draw_files(seed: u64, horizon_us: u64, processes: usize, policies: &[PolicyPlan]) -> Vec<CallPlan> {
    let mut chance = Chance::new(seed, "files");
    let mut files = Vec::new();
    for (policy, _) in policies.iter().enumerate().filter(|(_, policy)| policy.may_be_in_files) {
        files.extend((0..chance.spread(1, 20)).map(|_| {
            let action = Action::Apply(chance.between(1, LARGEST_DIVISOR));
            let (us, process) = (chance.between(0, horizon_us), chance.index(processes));
            CallPlan { us, process, policy, subject: 0, cost: 0, units: Amounts::default(), action }
        }));
    }
    files
}

/// Draws calls of processes that are busy with a subject, under policies whose calls are taken ahead.
fn draw_busy(seed: u64, horizon_us: u64, processes: usize, policies: &[PolicyPlan]) -> Vec<CallPlan> {
    let mut chance = Chance::new(seed, "busy");
    let mut calls = Vec::new();
    for (number, policy) in policies.iter().enumerate() {
        let Some(ahead_us) = policy.prefetch_us else { continue };
        for _ in 0..chance.between(1, 8) {
            let (us, process) = (chance.between(0, horizon_us), chance.index(processes));
            let apart_us = chance.spread(20, ahead_us / 10);
            calls.extend((0..chance.spread(20, 400)).map(|place| {
                let recounted = chance.happens(0.2);
                let action = if recounted { draw_action(&mut chance, policy, horizon_us) } else { Action::Decide };
                let cost = if chance.happens(0.1) { chance.between(0, 9) } else { 1 };
                CallPlan {
                    us: us + place * apart_us,
                    process,
                    policy: number,
                    subject: 0,
                    cost,
                    units: Amounts::default(),
                    action,
                }
            }));
        }
    }
    calls
}

/// Draws crowds of calls to the partners of policies: more than these admit.
fn draw_paced(seed: u64, horizon_us: u64, processes: usize, policies: &[PolicyPlan]) -> Vec<CallPlan> {
    let mut chance = Chance::new(seed, "calls to partners");
    let mut calls = Vec::new();
    for (number, policy) in policies.iter().enumerate() {
        let Some(partner) = &policy.partner else { continue };
        let longest_us = 2 * partner.per_us;
        for _ in 0..chance.between(1, 6) {
            let (us, subject) = (chance.between(0, horizon_us), chance.index(2));
            let apart_us = chance.spread(100, longest_us / partner.count);
            calls.extend((0..chance.spread(4, 6 * partner.count)).map(|place| {
                let action = match chance.between(0, 99) {
                    0..=49 => Action::Decide,
                    50..=89 => Action::Wait(chance.spread(10_000, longest_us)),
                    90 => Action::Pause(chance.spread(1_000, 2 * longest_us)),
                    91 => Action::Resume,
                    _ => draw_action(&mut chance, policy, horizon_us),
                };
                let us = us + place * apart_us;
                CallPlan {
                    us,
                    process: chance.index(processes),
                    policy: number,
                    subject,
                    cost: 1,
                    units: Amounts::default(),
                    action,
                }
            }));
        }
    }
    calls
}

fn draw_action(chance: &mut Chance, policy: &PolicyPlan, horizon_us: u64) -> Action {
    let later_us = chance.spread(1, horizon_us / 4);
    match chance.between(0, 199) {
        0..=9 => Action::Report,
        10..=19 => Action::Peek,
        20..=39 => Action::Refund(later_us),
        40..=54 => Action::Settle(later_us, chance.between(0, 6)),
        55..=64 => Action::Wait(later_us),
        65..=74 => Action::Drop(chance.spread(1, 10_000)),
        75 => Action::Reset,
        76 if policy.ban.is_some() => Action::Ban(later_us),
        77 if policy.ban.is_some() => Action::Unban,
        78 if policy.may_close => Action::Close(chance.spread(1_000_000, horizon_us / 2)),
        _ if policy.has_leases() => Action::Hold(later_us),
        _ => Action::Decide,
    }
}

impl CallPlan {
    fn stop(us: u64, process: usize, chance: &mut Chance) -> Self {
        let action = Action::Stop(chance.spread(10_000, 5_000_000));
        Self { us, process, policy: 0, subject: 0, cost: 0, units: Amounts::default(), action }
    }

    /// What it weighs in what the rules of a group count.
    #[must_use]
    pub fn cost_of(&self, unit: Option<&str>) -> u64 {
        unit.map_or(self.cost, |unit| self.units.of(unit).unwrap_or_default())
    }

    /// Whether it closes its policy, or what that counts in a unit.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        matches!(self.action, Action::Close(_) | Action::CloseUnit(..))
    }

    /// What it weighs once it is refunded or settled.
    #[must_use]
    pub fn used_of(&self, unit: Option<&str>) -> u64 {
        let used = match self.action {
            Action::Refund(_) => Some(0),
            Action::Settle(_, used) if unit.is_none() => Some(used),
            Action::SettleUnits(_, used) | Action::Meter(_, used) => unit.and_then(|unit| used.of(unit)),
            _ => None,
        };
        used.unwrap_or_else(|| self.cost_of(unit))
    }

    /// Whether it may count as something else after it was admitted.
    #[must_use]
    pub fn is_recounted(&self) -> bool {
        matches!(self.action, Action::Refund(_) | Action::Settle(..) | Action::SettleUnits(..) | Action::Meter(..))
    }

    /// Whether it is no call that is decided, but changes what is, or ends its process.
    #[must_use]
    pub fn is_administration(&self) -> bool {
        let changes_policy = self.is_closing() || matches!(self.action, Action::Apply(_));
        let changes_subject = matches!(self.action, Action::Reset | Action::Ban(_) | Action::Unban);
        let changes_pause = matches!(self.action, Action::Pause(_) | Action::Resume);
        changes_policy || changes_subject || changes_pause || matches!(self.action, Action::Stop(_))
    }
}

impl fmt::Display for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, policy, subject, cost, units, action, .. } = self;
        write!(f, "process {process}, p{policy}, subject {subject}, cost {cost}{units}, {action:?}")
    }
}
