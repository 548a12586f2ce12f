//! A process of a world, with the limiter and the policies that it has built.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tallygate::client::Pace;
use tallygate::{Limiter, Policy};

use super::paced;
use crate::fleet::Member;
use crate::workload::{PolicyPlan, Scenario};

/// A process that runs, and its limiter once it is built.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) member: Arc<Member>,
    limits: Arc<Mutex<Option<Arc<Limits>>>>,
}

/// What a process limits its calls with.
pub(super) struct Limits {
    pub(super) limiter: Limiter,
    pub(super) policies: Vec<BuiltPolicy>,
}

/// A policy, and what it was built from.
pub(super) struct BuiltPolicy {
    pub(super) plan: PolicyPlan,
    pub(super) policy: Policy,
    /// What makes the calls to its partner; `None` if they are made by hand.
    pub(super) pace: Option<Pace>,
}

impl Running {
    pub(super) fn limits(&self) -> Option<Arc<Limits>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts a process, which builds its limiter.
    pub(super) fn start(number: usize, scenario: &Scenario, url: String) -> Self {
        let clock = scenario.processes.get(number).copied().unwrap_or_default();
        let member = Member::start(scenario.seed, party_number(number), clock);
        let limits = Arc::<Mutex<_>>::default();
        let (scenario, ready) = (scenario.clone(), Arc::clone(&limits));
        member.spawn(async move {
            let built = build(&url, &scenario);
            *ready.lock().unwrap_or_else(PoisonError::into_inner) = built.map(Arc::new);
        });
        Self { member, limits }
    }
}

/// The number of a process as a party of the net.
pub(super) fn party_number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Builds the limiter and the policies of a process, in which it has to be called.
fn build(url: &str, scenario: &Scenario) -> Option<Limits> {
    let settings = scenario.settings;
    let limiter = Limiter::builder()
        .deadline(Duration::from_micros(settings.deadline_us))
        .denial_cache(Duration::from_micros(settings.denial_cache_us))
        .processes(settings.processes)
        .on_outage(settings.on_outage)
        .connect_lazy(url)
        .ok()?;
    let policies = scenario.policies.iter().map(|plan| build_policy(&limiter, plan)).collect::<Option<_>>()?;
    Some(Limits { limiter, policies })
}

fn build_policy(limiter: &Limiter, plan: &PolicyPlan) -> Option<BuiltPolicy> {
    let policy = plan.build()?;
    let pace = paced::pace(limiter, &policy, plan).ok()?;
    Some(BuiltPolicy { plan: plan.clone(), policy, pace })
}
