//! The faults of a world.

use std::fmt;

use super::calls::CallPlan;
use super::policies::PolicyPlan;
use super::topology::Topology;
use crate::engine::Chance;

/// A fault that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// When it begins, in microseconds.
    pub us: u64,
    /// How long it lasts, in microseconds.
    pub for_us: u64,
    /// Where: the number of a server, or of a process.
    pub at: usize,
    /// What happens.
    pub fault: Fault,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// A server accepts connections and answers nothing.
    Hang,
    /// A server ends, and comes back with what it had written to disk, which lags by so many microseconds.
    Crash {
        /// What is lost: all of the last microseconds.
        lost_us: u64,
        /// Whether its clients are not told.
        is_quiet: bool,
        /// How long it loads before it answers, in microseconds.
        loading_us: u64,
    },
    /// The clock of a server is set by so many microseconds.
    ClockStep(i64),
    /// A server has no memory left.
    Full,
    /// A server cannot write to disk, and refuses writes.
    Unsaved,
    /// A server forgets all scripts.
    Flush,
    /// Nothing passes between a process and the servers.
    Silent,
    /// A process cannot connect to the servers.
    Unreachable,
    /// Streams of a process are cut before such a share of requests, and of replies.
    Cut {
        /// Before requests.
        requests: f64,
        /// Before replies.
        replies: f64,
    },
    /// All streams of a process are cut.
    Hangup,
    /// Packets of a process take that much longer, in microseconds.
    Slow(u64),
    /// A process is killed, and started again.
    Kill,
    /// A process is paused.
    Pause,
    /// A replica takes over.
    Failover(Handover),
    /// A server, or a sentinel, does not reach the others, and processes still reach it.
    Isolated,
    /// A slot moves to another master.
    Move,
    /// Something else puts these bytes in front of the tallies of a server, which are removed afterwards.
    Forged([u8; 3]),
}

/// Why a replica takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// The primary was told to wait until the replica has all, and to follow it then.
    InStep,
    /// The sentinels were told to promote it. The primary goes on for a while.
    BySentinel,
    /// The primary is gone, and comes back as a primary.
    Gone,
}

impl Fault {
    /// A word for the table of what was played.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Hang => "hang",
            Self::Crash { .. } => "crash",
            Self::ClockStep(_) => "clock step",
            Self::Full => "out of memory",
            Self::Unsaved => "misconf",
            Self::Flush => "script flush",
            Self::Silent => "partition",
            Self::Unreachable => "unreachable",
            Self::Cut { .. } => "cut",
            Self::Hangup => "reset",
            Self::Slow(_) => "slow",
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Failover(Handover::InStep) => "planned failover",
            Self::Failover(Handover::BySentinel) => "failover by sentinels",
            Self::Failover(Handover::Gone) => "lost primary",
            Self::Isolated => "isolation",
            Self::Move => "slot move",
            Self::Forged(_) => "forged tallies",
        }
    }

    /// Whether it happens to a process.
    #[must_use]
    pub fn is_of_process(&self) -> bool {
        matches!(
            self,
            Self::Silent
                | Self::Unreachable
                | Self::Cut { .. }
                | Self::Hangup
                | Self::Slow(_)
                | Self::Kill
                | Self::Pause
        )
    }
}

pub(super) fn draw(seed: u64, topology: Topology, horizon_us: u64, processes: usize) -> Vec<FaultPlan> {
    let mut chance = Chance::new(seed, "faults");
    // One world in four is without faults, so that there all limits have to be exact.
    let number = if chance.happens(0.25) { 0 } else { chance.spread(1, 12) };
    // Mostly the primary, which is number 0 whichever server it is, then the replica, then the sentinels.
    let servers: &[usize] = match topology {
        Topology::Server => &[0],
        Topology::Sentinel => &[0, 0, 0, 0, 1, 2, 3, 4],
        Topology::Cluster => &[0, 1, 2, 0, 1, 2, 3, 4, 5],
    };
    let mut faults: Vec<FaultPlan> = (0..number)
        .map(|_| {
            let fault = draw_fault(&mut chance, topology);
            let at = if fault.is_of_process() { chance.index(processes) } else { chance.pick(servers) };
            let us = chance.between(0, horizon_us);
            FaultPlan { us, for_us: chance.spread(1_000, (horizon_us / 4).min(20_000_000)), at, fault }
        })
        .collect();
    faults.extend(draw_forgery(seed, topology, horizon_us));
    faults.sort_by_key(|plan| plan.us);
    faults
}

/// One world in eight has forged tallies. Servers that follow each other would disagree about them.
fn draw_forgery(seed: u64, topology: Topology, horizon_us: u64) -> Option<FaultPlan> {
    // By a chance of its own, so that the other worlds stay as they are.
    let mut chance = Chance::new(seed, "forgery");
    let is_forged = topology == Topology::Server && chance.happens(0.125);
    is_forged.then(|| FaultPlan {
        us: chance.between(0, horizon_us),
        for_us: chance.spread(1_000_000, 20_000_000),
        at: 0,
        fault: Fault::Forged([0; 3].map(|byte: u8| byte | chance.pick(&[0, 1, 0x7f, 0xff]))),
    })
}

/// Adds pauses of processes that are busy with a subject, whose calls are taken ahead. Worlds without faults stay so.
pub(super) fn add_pauses(seed: u64, policies: &[PolicyPlan], calls: &[CallPlan], faults: &mut Vec<FaultPlan>) {
    let mut chance = Chance::new(seed, "pauses of busy processes");
    let ahead = |call: &CallPlan| Some((call.us, call.process, policies.get(call.policy)?.prefetch_us?));
    let busy: Vec<_> = calls.iter().filter_map(ahead).collect();
    if faults.is_empty() || busy.is_empty() || !chance.happens(0.5) {
        return;
    }
    faults.extend((0..chance.between(1, 4)).map(|_| {
        let (us, at, ahead_us) = chance.pick(&busy);
        FaultPlan { us, for_us: chance.spread(ahead_us / 4, 4 * ahead_us), at, fault: Fault::Pause }
    }));
    faults.sort_by_key(|plan| plan.us);
}

fn draw_fault(chance: &mut Chance, topology: Topology) -> Fault {
    let several = if topology == Topology::Server { 12 } else { 18 };
    match chance.between(0, several) {
        0 => Fault::Hang,
        1 => Fault::Crash {
            lost_us: chance.pick(&[0, 1_000_000, u64::MAX]),
            is_quiet: chance.happens(0.3),
            loading_us: chance.pick(&[0, 0, 500_000]),
        },
        2 => Fault::ClockStep(draw_step(chance)),
        3 => chance.pick(&[Fault::Full, Fault::Unsaved]),
        4 => Fault::Flush,
        5 => Fault::Silent,
        6 => Fault::Unreachable,
        7 | 8 => {
            let share = 0.05 * chance.pick(&[1.0, 4.0, 10.0]);
            if chance.happens(0.5) {
                Fault::Cut { requests: share, replies: 0.0 }
            } else {
                Fault::Cut { requests: 0.0, replies: share }
            }
        }
        9 => Fault::Hangup,
        10 => Fault::Slow(chance.spread(1_000, 400_000)),
        11 => Fault::Kill,
        12 => Fault::Pause,
        13 | 14 => Fault::Isolated,
        _ if topology == Topology::Cluster && chance.happens(0.6) => Fault::Move,
        _ if topology == Topology::Cluster => Fault::Failover(chance.pick(&[Handover::InStep, Handover::Gone])),
        _ => Fault::Failover(chance.pick(&[Handover::InStep, Handover::BySentinel, Handover::Gone])),
    }
}

/// How far a clock is set: by little, so that time stands still, or by more.
fn draw_step(chance: &mut Chance) -> i64 {
    let us = i64::try_from(chance.spread(10, 60_000_000)).unwrap_or_default();
    if chance.happens(0.5) { us } else { -us }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { for_us, at, fault, .. } = self;
        let target = if fault.is_of_process() { "process" } else { "server" };
        write!(f, "{fault:?} of {target} {at} for {for_us}")
    }
}
