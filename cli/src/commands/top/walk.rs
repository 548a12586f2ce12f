//! A walk over subjects, which finds out where each stands.

use futures_util::future::try_join_all;
use tallygate::admin::__shared as shared;
use tallygate::{BackendError, Override, RejectionKind, Rule, Subject};

use super::scope::{SubjectGroup, SubjectScope};
use super::usage::Usage;
use crate::failure::Failure;
use crate::fleet::Fleet;

/// How many subjects are peeked at together: the server needs a small part of a millisecond for them.
const TOGETHER: usize = 16;

/// Walks over all subjects of a scope, and returns how many there are.
///
/// It calls `see` for each subject. After each step, it calls `progress` with the number of subjects so far, and with the
/// part of the walk that is done, from 0 to 1.
pub(in crate::commands) async fn walk(
    fleet: &Fleet<'_>,
    scope: &SubjectScope<'_>,
    mut see: impl FnMut(Usage),
    mut progress: impl FnMut(u64, f64),
) -> Result<u64, Failure> {
    let mut tallies = scope.tallies(fleet)?;
    let overrides = fleet.limiter.overrides().await?;
    let mut looked_at = 0;
    while let Some(page) = tallies.next_page().await? {
        let found: Vec<_> = page.found().collect();
        for some in found.chunks(TOGETHER) {
            look(fleet, scope, &overrides, some).await?.into_iter().for_each(&mut see);
            looked_at += some.len() as u64;
        }
        progress(looked_at, page.progress());
    }
    Ok(looked_at)
}

async fn look(
    fleet: &Fleet<'_>,
    scope: &SubjectScope<'_>,
    overrides: &[Override],
    some: &[(usize, &Subject)],
) -> Result<Vec<Usage>, BackendError> {
    let places: Vec<_> = scope.places().collect();
    let known = some.iter().filter_map(|(place, subject)| Some((places.get(*place)?, *subject)));
    try_join_all(known.map(|(place, subject)| look_at(fleet, scope, overrides, *place, subject))).await
}

async fn look_at(
    fleet: &Fleet<'_>,
    scope: &SubjectScope<'_>,
    overrides: &[Override],
    place: SubjectGroup<'_>,
    subject: &Subject,
) -> Result<Usage, BackendError> {
    let SubjectGroup { listed, label } = place;
    // The other subjects of a call are placeholders, and their rules are left out of what is shown.
    let placeholder = Subject::everyone();
    let of = |other: Option<&str>| if other == label { subject } else { &placeholder };
    let labels = listed.described.subjects().map(|subject| subject.label());
    let call = fleet.limiter.peek(&listed.policy, of(None));
    let call = labels.fold(call, |call, other| call.subject(other, of(Some(other))));
    let decision = call.clone().await?;
    // An override may have more rules than the policy, or fewer.
    let labels = call.labels()?;
    let is_shown = |position: usize, rule: &Rule| {
        let counts_it = labels.get(position).is_some_and(|other| other.as_deref() == label);
        counts_it && scope.has(position, rule)
    };
    // A ban belongs to the main subject and to no rule, and a pause to the one that the policy lets be paused.
    let shows_without_rule = |kind: RejectionKind| {
        let owner = if kind == RejectionKind::Paused { listed.policy.paused_label() } else { None };
        scope.rule.is_none() && label == owner
    };
    let is_shadow = shared::shadow(listed.described, overrides) == Some(true);
    Ok(Usage::new(place, subject, &decision, is_shown, shows_without_rule, is_shadow))
}
