//! The settings of a limit, and how it decides about a request by them.

use std::sync::Arc;

use super::effects::{Effects, Limited};
use super::gate::{Exemptions, Gate, Guard};
use crate::context::KeyedPolicy;
use crate::limiter::Limiter;
use crate::web::layer::Layer;
use crate::web::parts::Parts;

#[derive(Clone)]
pub(super) struct LimitSettings {
    pub(super) keyed: KeyedPolicy,
    /// `None` means the installed limiter.
    pub(super) limiter: Option<Limiter>,
    pub(super) exemptions: Exemptions,
    pub(super) shadow: bool,
    /// What a request costs, by the names of units; one call if none is named.
    pub(super) costs: Vec<(String, Arc<FindCost>)>,
    /// `None` are the counts of the policy.
    pub(super) counts: Option<Counts>,
    pub(super) effects: Effects,
    /// Makes the context of requests that have none.
    pub(super) layer: Layer,
}

pub(super) type FindCost = dyn Fn(&Parts<'_>) -> u64 + Send + Sync;
type FindCounts = dyn Fn(&Parts<'_>) -> Vec<u64> + Send + Sync;

/// The counts of each request.
#[derive(Clone)]
pub(super) struct Counts {
    pub(super) find: Arc<FindCounts>,
    /// The counts of the policy, for rules behind the last count that was found.
    pub(super) own: Arc<[u64]>,
}

impl Counts {
    fn of(&self, parts: &Parts<'_>) -> Vec<u64> {
        let mut counts = (self.find)(parts);
        counts.extend(self.own.iter().skip(counts.len()));
        counts
    }
}

impl Gate for LimitSettings {
    fn limited(&self, parts: &Parts<'_>) -> Limited {
        let Self { keyed, limiter, exemptions, shadow, effects, .. } = self;
        keyed.report_lack_of_keys();
        if exemptions.apply(parts) {
            return Limited::default();
        }
        let counted = self.counts.as_ref().map(|counts| keyed.policy.with_counts(counts.of(parts)));
        let guard = Guard {
            policy: counted.as_ref().unwrap_or(&keyed.policy),
            key: &keyed.key,
            subjects: &keyed.others,
            limiter: limiter.as_ref(),
            costs: self.costs.iter().map(|(unit, cost)| (unit.as_str(), cost(parts))).collect(),
            is_shadow: *shadow,
            effects: effects.clone(),
        };
        Limited(vec![guard.decided(parts)])
    }

    fn layer(&self) -> &Layer {
        &self.layer
    }
}
