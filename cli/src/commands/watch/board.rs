//! What is known of the fleet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use tallygate::Override;
use tallygate::admin::__shared as shared;
use tallygate::admin::{Finding, Level, Registered, ServerReport};

use super::outages::Outages;
use super::rates::Rates;
use crate::commands::top::usage::Usage;

/// What is known of the fleet.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) prefix: String,
    policies: Vec<WatchedPolicy>,
    pub(super) rates: Rates,
    /// The first subjects of the last walk; `None` before the end of the first.
    pub(super) walked: Option<Walked>,
    /// How much of a walk is done, from 0 to 1; `None` between two walks.
    pub(super) progress: Option<f64>,
    servers: Vec<WatchedServer>,
    pub(super) outages: Outages,
}

/// A policy, as it is listed.
#[derive(Clone, Debug)]
pub(super) struct WatchedPolicy {
    pub(super) name: String,
    pub(super) rules: String,
    pub(super) overrides: usize,
}

/// What a walk has found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) busiest: Vec<Usage>,
    pub(super) subjects: u64,
    /// How many subjects of each policy are denied.
    pub(super) denied: BTreeMap<String, u64>,
}

/// What is wrong on a server.
#[derive(Clone, Debug)]
pub(super) struct WatchedServer {
    pub(super) server: String,
    pub(super) level: Level,
    /// The findings of that level, if anything is wrong.
    pub(super) findings: Vec<String>,
}

impl Board {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            policies: Vec::new(),
            rates: Rates::default(),
            walked: None,
            progress: None,
            servers: Vec::new(),
            outages: Outages::default(),
        }
    }

    pub(super) fn set_policies(&mut self, registered: &Registered, overrides: &[Override]) {
        let mut of_policies: BTreeMap<&str, usize> = BTreeMap::new();
        for one in overrides {
            *of_policies.entry(one.policy()).or_default() += 1;
        }
        let policies = registered.policies().iter().map(|policy| {
            let shadow = (shared::shadow(policy, overrides) == Some(true)).then(|| "shadow".to_owned());
            WatchedPolicy {
                name: policy.name().to_owned(),
                rules: policy.rules().iter().map(ToString::to_string).chain(shadow).collect::<Vec<_>>().join(" · "),
                overrides: of_policies.get(policy.name()).copied().unwrap_or_default(),
            }
        });
        self.policies = policies.collect();
    }

    /// Returns the policies, those with the most denials first.
    pub(super) fn policies(&self) -> Vec<&WatchedPolicy> {
        let mut policies: Vec<_> = self.policies.iter().collect();
        // Whole thousandths have an order.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
        let rate = |policy: &str| (self.rates.per_second(policy).unwrap_or_default() * 1_000.0) as u64;
        policies.sort_by_cached_key(|policy| {
            (Reverse(rate(&policy.name)), Reverse(self.denied(&policy.name)), policy.name.clone())
        });
        policies
    }

    /// Returns how many subjects of a policy are denied; `None` before the end of the first walk.
    pub(super) fn denied(&self, policy: &str) -> Option<u64> {
        self.walked.as_ref().map(|walked| walked.denied.get(policy).copied().unwrap_or_default())
    }

    /// Sets what is right and wrong on the servers. Of several, one may be away alone.
    pub(super) fn set_servers(&mut self, reports: &[ServerReport], now: Instant) {
        self.servers = reports.iter().map(WatchedServer::of).collect();
        for report in reports.iter().filter(|_| reports.len() > 1) {
            let is_away = |finding: &&Finding| finding.topic() == "connection" && finding.level() == Level::Problem;
            let problem = report.findings().iter().find(is_away);
            self.outages.note(report.server(), problem.map(Finding::text), now);
        }
    }

    pub(super) fn servers(&self) -> &[WatchedServer] {
        &self.servers
    }
}

impl WatchedServer {
    fn of(report: &ServerReport) -> Self {
        let level = report.level();
        let worst = report.findings().iter().filter(|finding| finding.level() == level && level > Level::Ok);
        let findings = worst.map(|finding| format!("{}: {finding}", finding.topic())).collect();
        Self { server: report.server().to_owned(), level, findings }
    }
}
