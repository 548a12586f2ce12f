//! What a policy sets beside its rules.

use std::time::Duration;

use tallygate_rules::OnOutage;

/// What a policy sets beside its rules. What it does not say of outages and deadlines, the limiter does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PolicySettings {
    pub(crate) on_outage: Option<OnOutage>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) warn_at: Option<f64>,
}
