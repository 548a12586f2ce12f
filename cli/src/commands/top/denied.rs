//! The subjects that are denied most often, where the programs keep denied subjects.

use std::cmp::Reverse;

use serde_json::{Value, json};
use tallygate::DeniedSubject;

use super::scope::SubjectScope;
use super::usage::{Ranking, place_cells};
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::number::{counted, grouped};
use crate::subject;
use crate::table::TextTable;

/// Returns the subjects that were denied most often within this hour and the one before.
pub(super) async fn rank(fleet: &Fleet<'_>, scope: &SubjectScope<'_>, limit: usize) -> Result<Ranking, Failure> {
    let mut all = Vec::new();
    for policy in scope.policies() {
        // All are listed, because subjects of other labels may come first.
        let listed = fleet.limiter.top_denied(policy, usize::MAX).await?;
        let is_meant = |denied: &DeniedSubject| scope.only().is_none_or(|place| denied.label() == place.label);
        all.extend(listed.into_iter().filter(is_meant));
    }
    // The subjects of one policy are in this order already.
    all.sort_by_key(|denied| Reverse(denied.denials()));
    let (subjects, found) = (all.len() as u64, &all[..limit.min(all.len())]);
    Ok(Ranking { text: text(scope, found, subjects), top: found.iter().map(json_of).collect(), subjects })
}

fn json_of(denied: &DeniedSubject) -> Value {
    json!({
        "policy": denied.policy(),
        "label": denied.label(),
        "subject": denied.subject().to_string(),
        "denials": denied.denials(),
    })
}

fn text(scope: &SubjectScope<'_>, found: &[DeniedSubject], all: u64) -> String {
    if all == 0 {
        let of = scope.only().map(|place| format!(" of {}", place.listed.described.name())).unwrap_or_default();
        return format!(
            "no denied subject{of} is known; programs keep them if `LimiterBuilder::denied_subjects` says how many\n"
        );
    }
    let mut table = TextTable::default();
    for denied in found {
        let [policy, label] = place_cells(denied.policy(), denied.label(), scope.only().is_none());
        let subject = subject::name(&denied.subject().to_string()).to_owned();
        table.push([policy, label, subject, format!("at least {} denied", counted(denied.denials(), "call"))]);
    }
    let shown = grouped(found.len() as u64);
    format!("{}{shown} of {} within this hour and the one before\n", table.text(), counted(all, "subject"))
}
