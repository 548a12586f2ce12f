//! The policies of a file for requests of a web server.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::lines::{At, Lines};
use super::plans::{ListedPlans, Plans};
use super::request_limit::{self, RequestLimit};
use super::rules::PolicyParts;
use super::table::Table;
use crate::bounds::{MOST_PATHS, MOST_SUGGESTIONS};
use crate::context::{is_of_requests, is_unknown, known_value_meant, value_meant};
use crate::error::Mistake;
use crate::policy::{PlanCounts, Policy};

/// The policies of a file for requests, in the order of the file.
#[derive(Default)]
pub(crate) struct RequestLimits(Vec<RequestLimit>);

impl RequestLimits {
    /// Reads a policy, and adds it unless it is mistaken.
    pub(super) fn read(
        &mut self,
        parts: PolicyParts<'_>,
        table: Table<'_>,
        plans: &Arc<ListedPlans>,
        lines: &mut Lines<'_>,
    ) {
        self.0.extend(request_limit::read(parts, table, plans, lines));
    }

    pub(crate) fn as_slice(&self) -> &[RequestLimit] {
        &self.0
    }

    /// Returns the policy of that name, with the counts that requests without a plan have.
    pub(super) fn policy(&self, name: &str) -> Option<Policy> {
        let limit = self.get(name)?;
        Some(limit.effects.planned(&limit.policy, |_| None).unwrap_or_else(|| limit.policy.clone()))
    }

    /// Returns the policy of that name as tools show it: a rule whose count is that of a plan has none.
    pub(super) fn open_policy(&self, name: &str) -> Option<&Policy> {
        self.get(name).map(|limit| &limit.policy)
    }

    /// Returns the counts of a policy's plans; `None` if no policy for requests has that name.
    pub(super) fn plan_counts(&self, name: &str) -> Option<BTreeMap<&str, PlanCounts>> {
        self.get(name).map(|limit| limit.effects.plan_counts(&limit.policy))
    }

    fn get(&self, name: &str) -> Option<&RequestLimit> {
        self.0.iter().find(|limit| limit.policy.name() == name)
    }

    pub(super) fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.0.iter().map(|limit| &limit.policy)
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = &Plans> {
        self.0.iter().map(|limit| &limit.effects.plans)
    }

    /// Whether the plan of a request says what any of them counts.
    pub(super) fn have_plans(&self) -> bool {
        self.0.iter().any(|limit| limit.effects.plan_value().is_some())
    }

    /// Reports what shows only beside the other policies, and the values that are not `listed`.
    pub(super) fn check(&self, listed: Option<&[String]>, lines: &mut Lines<'_>) {
        if let Some(listed) = listed {
            check_listed(&self.0, listed, lines);
        }
        check_reached(&self.0, lines);
    }

    /// Returns a warning for each value, if the file has no list of values.
    pub(super) fn unlisted_values(&self) -> Vec<Mistake> {
        unlisted(&self.0).collect()
    }

    /// Returns a mistake for each value that no layer of this process finds, unless a limit in force shows it, too.
    pub(super) fn unknown_values(&self, in_force: Option<&Self>) -> Vec<Mistake> {
        unknown(&self.0, in_force.map_or(&[], Self::as_slice)).collect()
    }
}

/// Reports keys that show a value which is not listed.
fn check_listed(limits: &[RequestLimit], listed: &[String], lines: &mut Lines<'_>) {
    let known: HashSet<_> = listed.iter().collect();
    let unlisted = shown(limits).filter(|shown| !known.contains(&shown.value));
    for (number, At { value: name, place }) in unlisted.enumerate() {
        let suggested = listed.iter().filter(|_| number < MOST_SUGGESTIONS);
        let meant = value_meant(name, suggested.map(String::as_str));
        let remedy = if meant.is_empty() { "; add it there, if the program finds it in requests" } else { &meant };
        lines.report(*place, format!("`{{@{name}}}` is no value that `values` lists{remedy}"));
    }
}

fn unlisted(limits: &[RequestLimit]) -> impl Iterator<Item = Mistake> {
    shown(limits).map(|At { value: name, place }| {
        let meant = value_meant(name, []);
        Mistake::new(
            *place,
            format!("whether requests have `{{@{name}}}`, only the program knows; list its values, like `values = [\"{name}\"]`{meant}"),
        )
    })
}

fn unknown(limits: &[RequestLimit], in_force: &[RequestLimit]) -> impl Iterator<Item = Mistake> {
    let names_in_force: HashSet<_> = in_force.iter().flat_map(|limit| &limit.shown).map(|shown| &shown.value).collect();
    let unknown = shown(limits).filter(move |shown| is_unknown(&shown.value) && !names_in_force.contains(&shown.value));
    unknown.enumerate().map(|(number, At { value: name, place })| {
        let meant = if number < MOST_SUGGESTIONS { known_value_meant(name) } else { String::new() };
        let add =
            "; add it with `web::Layer::value`, or say with `context::declare` that contexts of the program have it";
        let remedy = if meant.is_empty() { add } else { &meant };
        Mistake::new(*place, format!("no layer of this program finds `{{@{name}}}` in requests{remedy}"))
    })
}

/// Returns the values that are shown, except those that each request has.
fn shown(limits: &[RequestLimit]) -> impl Iterator<Item = &At<String>> {
    limits.iter().flat_map(|limit| &limit.shown).filter(|shown| !is_of_requests(&shown.value))
}

/// Reports policies that limit no request because an earlier policy limits all of their requests. A policy in shadow
/// neither hides another policy nor is hidden.
fn check_reached(limits: &[RequestLimit], lines: &mut Lines<'_>) {
    let mut paths = 0;
    let is_beyond = |limit: &&RequestLimit| {
        paths += limit.requests.paths.len();
        paths > MOST_PATHS
    };
    if let Some(limit) = limits.iter().find(is_beyond) {
        let message =
            format!("there are more than {MOST_PATHS} paths in the file; write fewer, like `/api/*` for many");
        lines.report(limit.requests.place, message);
        return;
    }
    let enforced: Vec<_> = limits.iter().filter(|limit| !limit.is_shadow && !limit.policy.is_shadow()).collect();
    for (position, limit) in enforced.iter().enumerate() {
        let earlier = enforced.iter().take(position).find(|earlier| earlier.requests.cover(&limit.requests));
        if let Some(earlier) = earlier {
            let message = format!(
                "the policy `{}` limits all these requests, as it stands first; write this one before it, or remove it",
                earlier.policy.name()
            );
            lines.report(limit.requests.place, message);
        }
    }
}
