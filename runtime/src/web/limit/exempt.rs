//! The requests that a limit leaves alone.

use std::sync::Arc;

use ipnet::IpNet;

use crate::request_pattern::{PathPattern, method_includes};
use crate::web::parts::Parts;

/// The requests that a limit leaves alone.
#[derive(Clone, Default)]
pub(in crate::web) struct Exemptions {
    /// The only methods that are limited; `None` is all but `OPTIONS`.
    methods: Option<Vec<String>>,
    limits_options: bool,
    paths: Vec<PathPattern>,
    networks: Vec<IpNet>,
    conditions: Vec<Arc<Condition>>,
}

type Condition = dyn Fn(&Parts<'_>) -> bool + Send + Sync;

impl Exemptions {
    pub(super) fn limit_methods(&mut self, methods: Vec<String>) {
        self.methods = Some(methods);
    }

    pub(super) fn limit_options(&mut self) {
        self.limits_options = true;
    }

    pub(super) fn exempt_paths(&mut self, paths: Vec<PathPattern>) {
        self.paths.extend(paths);
    }

    pub(in crate::web) fn exempt_networks(&mut self, networks: Vec<IpNet>) {
        self.networks.extend(networks);
    }

    pub(in crate::web) fn exempt_if(&mut self, condition: Arc<Condition>) {
        self.conditions.push(condition);
    }

    /// Returns whether a request is left alone.
    pub(super) fn apply(&self, parts: &Parts<'_>) -> bool {
        !self.limits_method(parts.method()) || self.exempt(parts)
    }

    /// The same, whatever its method is.
    pub(in crate::web) fn exempt(&self, parts: &Parts<'_>) -> bool {
        self.paths.iter().any(|path| path.contains(parts.path()))
            || self.exempts_client(parts)
            || self.conditions.iter().any(|condition| condition(parts))
    }

    fn limits_method(&self, method: &str) -> bool {
        match &self.methods {
            Some(methods) => methods.iter().any(|limited| method_includes(limited, method)),
            None => self.limits_options || method != "OPTIONS",
        }
    }

    fn exempts_client(&self, parts: &Parts<'_>) -> bool {
        let is_exempt = |address| self.networks.iter().any(|network| network.contains(&address));
        parts.client_ip().is_some_and(|client| is_exempt(client.address()))
    }
}
