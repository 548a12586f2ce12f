//! The known state of the fleet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use tallygate::Override;
use tallygate::admin::__shared as shared;
use tallygate::admin::{Finding, Level, Registered, ServerReport};

use super::outages::Outages;
use super::rates::Rates;
use crate::commands::top::usage::Usage;

#[derive(Debug)]
pub(super) struct Board {
    pub(super) prefix: String,
    policies: Vec<WatchedPolicy>,
    pub(super) rates: Rates,
    /// The result of the last walk; `None` until the first one ends.
    pub(super) walked: Option<Walked>,
    /// How much of a walk is done, from 0 to 1; `None` between two walks.
    pub(super) progress: Option<f64>,
    servers: Vec<WatchedServer>,
    pub(super) outages: Outages,
}

#[derive(Clone, Debug)]
pub(super) struct WatchedPolicy {
    pub(super) name: String,
    pub(super) rules: String,
    pub(super) overrides: usize,
}

/// The result of a walk over all subjects.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) busiest: Vec<Usage>,
    pub(super) subjects: u64,
    /// How many subjects of each policy are denied.
    pub(super) denied: BTreeMap<String, u64>,
}

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
        // A rate is a float, which has no total order. Whole thousandths have one.
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

    /// Sets the reports of the servers. If one of several is away, that is an outage of its own.
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
