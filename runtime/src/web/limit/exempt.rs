//! The requests that a limit leaves alone.

use std::sync::Arc;

use ipnet::IpNet;

use crate::request_pattern::{PathPattern, method_includes};
use crate::web::parts::Parts;

/// The requests that a limit leaves alone.
#[derive(Clone, Default)]
pub(in crate::web) struct Exemptions {
    /// The only methods that are limited; `None` is all but `OPTIONS`.
    pub(super) methods: Option<Vec<String>>,
    pub(super) limits_options: bool,
    pub(super) paths: Vec<PathPattern>,
    pub(in crate::web) networks: Vec<IpNet>,
    pub(in crate::web) conditions: Vec<Arc<Condition>>,
}

pub(in crate::web) type Condition = dyn Fn(&Parts<'_>) -> bool + Send + Sync;

impl Exemptions {
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
