//! Reports on the servers of a limiter.

mod access;
mod clock;
mod settings;

use self::access::LeaseUse;
use super::finding::{Finding, Level};
use super::registered_policy::RegisteredPolicy;
use crate::error::BackendError;
use crate::limiter::Limiter;
use crate::store::ServerFacts;

/// The findings about a server that decides calls: see [`Limiter::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    server: String,
    findings: Vec<Finding>,
}

impl Limiter {
    /// Checks each server that decides calls: the one of the URL, the primary that the sentinels name, or every primary
    /// of a cluster.
    ///
    /// It checks the version, eviction, memory, persistence, clock and latency of the server, the permissions of the
    /// user of the limiter, and whether other programs have keys with the prefix. If the user lacks the permission for
    /// a check, that is a finding, too. A known set of calls is decided, on keys that are then removed, and the answers are
    /// compared with what they should be. Nothing else is changed. It takes some dozens of round trips to each server, each of
    /// which may take as long as a [decision](crate::LimiterBuilder::deadline).
    ///
    /// # Errors
    ///
    /// The nodes of a cluster cannot be found. A server that does not answer is a finding. In memory there is no
    /// server, so there is no report.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tallygate::Limiter;
    /// use tallygate::admin::Level;
    ///
    /// # async fn look() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::connect("redis://127.0.0.1/").await?;
    /// for report in limiter.inspect().await? {
    ///     for finding in report.findings().iter().filter(|finding| finding.level() > Level::Ok) {
    ///         println!("{}: {finding}", report.server());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self) -> Result<Vec<ServerReport>, BackendError> {
        let servers = self.store().inspect().await?;
        let (beside, leases) = (clock::compare(&servers), self.leases().await);
        Ok(servers.iter().zip(beside).map(|(facts, beside)| ServerReport::new(facts, beside, leases)).collect())
    }

    /// Returns whether a listed policy limits concurrent calls. If the list cannot be read, another finding says so.
    async fn leases(&self) -> LeaseUse {
        let registered = self.registered_policies().await;
        let takes_leases = |policy: &RegisteredPolicy| policy.rules().iter().any(|rule| rule.lease().is_some());
        let is_listed = registered.is_ok_and(|registered| registered.policies().iter().any(takes_leases));
        if is_listed { LeaseUse::Taken } else { LeaseUse::Unknown }
    }
}

impl ServerReport {
    fn new(facts: &ServerFacts, beside_others: Option<Finding>, leases: LeaseUse) -> Self {
        let mut findings = match &facts.known {
            Ok(known) => [settings::judge(known), clock::judge(&known.times), access::judge(known, leases)].concat(),
            Err(error) => {
                let remedy = "check the server, and its address and login in the url";
                vec![Finding::new("connection", Level::Problem, error.to_string()).with_remedy(remedy)]
            }
        };
        findings.extend(beside_others);
        Self { server: facts.place.clone(), findings }
    }

    /// Returns the host and the port of the server, or the path of its socket.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the level of the worst finding.
    #[must_use]
    pub fn level(&self) -> Level {
        self.findings.iter().map(Finding::level).max().unwrap_or(Level::Ok)
    }
}
