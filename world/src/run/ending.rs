//! What is left when all faults are over: nothing. All keys are gone, and all limits are full.

use std::sync::Arc;
use std::time::Duration;

use tallygate::{Algorithm, DecidedBy, Decision, Rule};

use super::call::Subjects;
use super::process::Limits;
use super::world::World;
use crate::engine::{self, sleep};
use crate::fleet::sleeping;
use crate::history::Event;
use crate::workload::Scenario;

/// Longer than a call, its wait and its outage may take after its beginning.
const ROOM_US: u64 = 60_000_000;

/// How long to wait before looking once more.
const AGAIN_US: u64 = 5_000_000;

pub(super) async fn look(world: &World) {
    let end_us = world.scenario.faults.iter().map(|plan| plan.us + plan.for_us).max().unwrap_or_default();
    engine::sleep_until(end_us.max(world.scenario.horizon_us)).await;
    world.heal();
    world.servers.heal();
    sleep(world.scenario.horizon_us / 2 + ROOM_US).await;
    world.history.note(Event::Quiet);
    sleep(longest_us(&world.scenario)).await;
    let keys = world.servers.tallies();
    if !keys.is_empty() {
        let fault = Some(format!("keys are left: {}", keys.join(" ")));
        world.history.note(Event::Final { fault });
    }
    for running in world.processes() {
        let Some(limits) = running.limits() else { continue };
        let (scenario, history) = (world.scenario.clone(), world.history.clone());
        let member = Arc::clone(&running.member);
        running.member.spawn(async move {
            // A process may have to connect first, which may take longer than its deadline.
            let mut fault = find_fault(&scenario, &limits).await;
            for _ in 0..3 {
                if fault.is_none() {
                    break;
                }
                sleeping(&member, AGAIN_US).await;
                fault = find_fault(&scenario, &limits).await;
            }
            history.note(Event::Final { fault });
        });
    }
    sleep(ROOM_US).await;
}

async fn find_fault(scenario: &Scenario, limits: &Limits) -> Option<String> {
    for (number, policy) in scenario.policies.iter().enumerate() {
        for subject in 0..4 {
            let subjects = Subjects::numbered(subject);
            let fault = match subjects.check_under(limits, number).peek().report().await {
                Ok(Decision::Allowed(permit)) if permit.decided_by() == DecidedBy::Backend => permit
                    .report()
                    .iter()
                    .find(|status| status.remaining() != whole(status.rule(), policy.prefetch_us))
                    .map(|status| format!("`{}` has {} left", status.rule(), status.remaining())),
                Ok(Decision::Allowed(permit)) => Some(format!("decided by {}", permit.decided_by().as_str())),
                Ok(Decision::Denied(denial)) => Some(format!("denied: {denial}")),
                Err(error) => Some(error.to_string()),
            };
            if let Some(fault) = fault {
                return Some(format!("{} of subject {subject}: {fault}", policy.name));
            }
        }
    }
    None
}

/// What an unused rule has left.
fn whole(rule: &Rule, prefetch_us: Option<u64>) -> u64 {
    let ahead = prefetch_us.and_then(|us| rule.ahead(Duration::from_micros(us)));
    let rule = ahead.as_ref().unwrap_or(rule);
    match rule.algorithm() {
        Algorithm::TokenBucket(bucket) => bucket.initial_for(rule.count()),
        _ => rule.count(),
    }
}

/// Longer than any tally lives.
fn longest_us(scenario: &Scenario) -> u64 {
    let rules = scenario.policies.iter().flat_map(|policy| &policy.groups).flat_map(|group| &group.rules);
    let windows = rules.map(|rule| match rule.algorithm() {
        Algorithm::TokenBucket(bucket) => bucket.reset_after_for(rule.count()),
        _ => rule.per().unwrap_or_default(),
    });
    let bans = scenario.policies.iter().filter_map(|policy| policy.ban).flat_map(|ban| [ban.within(), ban.duration()]);
    let pauses = scenario.policies.iter().filter_map(|policy| policy.partner.as_ref());
    let pauses = pauses.map(|partner| Duration::from_micros(partner.longest_pause_us));
    let longest = windows.chain(bans).chain(pauses).max().unwrap_or_default();
    let longest_us = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX / 8);
    3 * longest_us.max(scenario.horizon_us) + 3 * ROOM_US
}
