//! All that a seed plays, as lists, so that it can be shortened.

use std::fmt;

use tallygate::OnOutage;

use super::calls::{self, CallPlan};
use super::faults::{self, FaultPlan};
use super::policies::{self, PolicyPlan};
use super::topology::Topology;
use crate::engine::Chance;
use crate::fleet::Clock;
use crate::net::Link;

/// All that a world plays.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed that it was drawn by.
    pub seed: u64,
    /// How the servers are arranged.
    pub topology: Topology,
    /// When the last call begins, in microseconds.
    pub horizon_us: u64,
    /// What links are usually like.
    pub link: Link,
    /// The settings of all limiters.
    pub settings: Settings,
    /// The clocks of the processes.
    pub processes: Vec<Clock>,
    /// The policies that all processes have.
    pub policies: Vec<PolicyPlan>,
    /// The calls, in the order of their times.
    pub calls: Vec<CallPlan>,
    /// The faults, in the order of their times.
    pub faults: Vec<FaultPlan>,
}

/// How much a world plays.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The longest that calls are made, in microseconds.
    pub longest_us: u64,
    /// The fewest and the most calls.
    pub calls: (u64, u64),
}

impl Default for Extent {
    fn default() -> Self {
        Self { longest_us: 600_000_000, calls: (50, 2_000) }
    }
}

/// The settings of a limiter.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The deadline, in microseconds.
    pub deadline_us: u64,
    /// How long denials are cached, in microseconds.
    pub denial_cache_us: u64,
    /// Among how many processes counts are divided.
    pub processes: u64,
    /// What happens to calls in an outage, if their policy does not say it.
    pub on_outage: OnOutage,
}

impl Scenario {
    /// Whether nothing goes wrong.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_calm_until(u64::MAX)
    }

    /// Whether nothing goes wrong before that time, in microseconds, and at it.
    #[must_use]
    pub fn is_calm_until(&self, us: u64) -> bool {
        self.link.loss <= 0.0 && self.faults.iter().all(|plan| plan.us > us)
    }

    /// What happens to calls in an outage.
    #[must_use]
    pub fn on_outage(&self, policy: &PolicyPlan) -> OnOutage {
        policy.on_outage.unwrap_or(self.settings.on_outage)
    }

    /// Draws what a seed plays.
    #[must_use]
    pub fn draw(seed: u64, topology: Topology, Extent { longest_us, calls }: Extent) -> Self {
        let mut chance = Chance::new(seed, "scenario");
        let horizon_us = chance.spread(2_000_000.min(longest_us), longest_us);
        let link = draw_link(&mut chance);
        let settings = Settings {
            deadline_us: chance.spread(50_000, 500_000),
            denial_cache_us: chance.pick(&[0, 100_000, 1_000_000]),
            processes: chance.between(1, 4),
            on_outage: chance.pick(&[OnOutage::Deny, OnOutage::Deny, OnOutage::Local, OnOutage::Allow]),
        };
        let processes: Vec<Clock> = (0..chance.between(1, 4)).map(|_| draw_clock(&mut chance)).collect();
        let policies = policies::draw(seed, horizon_us);
        let calls = calls::draw(seed, horizon_us, calls, link.delay_us, processes.len(), &policies);
        let mut faults = faults::draw(seed, topology, horizon_us, processes.len());
        faults::add_pauses(seed, &policies, &calls, &mut faults);
        Self { seed, topology, horizon_us, link, settings, processes, policies, calls, faults }
    }
}

fn draw_link(chance: &mut Chance) -> Link {
    let delay_us = chance.spread(20, 3_000);
    let loss = if chance.happens(0.2) { 0.01 } else { 0.0 };
    Link { delay_us, jitter_us: chance.spread(1, delay_us), loss, ..Link::default() }
}

fn draw_clock(chance: &mut Chance) -> Clock {
    let gain = i32::try_from(chance.between(0, 400)).unwrap_or_default() - 200;
    let off_us = i64::try_from(chance.between(0, 7_200_000_000)).unwrap_or_default() - 3_600_000_000;
    if chance.happens(0.5) { Clock { gain, ahead_us: off_us } } else { Clock::default() }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} on {}: {} s", self.seed, self.topology.name(), self.horizon_us / 1_000_000)?;
        writeln!(f, "{:?}", self.link)?;
        writeln!(f, "{:?}", self.settings)?;
        for (number, clock) in self.processes.iter().enumerate() {
            writeln!(f, "process {number}: {clock:?}")?;
        }
        self.policies.iter().try_for_each(|policy| writeln!(f, "policy {policy}"))
    }
}
