//! Who is denied most often, as far as the programs keep denied subjects.

use serde_json::json;
use tallygate::DeniedSubject;

use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::number::{counted, grouped};
use crate::output::Output;
use crate::subject;
use crate::table::TextTable;

/// Returns the subjects of a policy that were denied most often within this hour and the one before, those on one label only.
pub(super) async fn denied(
    fleet: &Fleet<'_>,
    policy: &str,
    label: Option<&str>,
    limit: usize,
) -> Result<Output, Failure> {
    // Those on other labels may come before.
    let listed = fleet.limiter.top_denied(policy, usize::MAX).await?;
    let all: Vec<_> = listed.iter().filter(|denied| denied.label() == label).collect();
    let found = &all[..limit.min(all.len())];
    let top: Vec<_> = found.iter().map(|denied| shown(denied)).collect();
    let json = json!({ "policy": policy, "label": label, "subjects": all.len(), "top": top });
    Ok(Output::done(text(policy, found, all.len() as u64), json))
}

fn shown(denied: &DeniedSubject) -> serde_json::Value {
    json!({ "subject": denied.subject().to_string(), "denials": denied.denials() })
}

fn text(policy: &str, found: &[&DeniedSubject], all: u64) -> String {
    if all == 0 {
        return format!(
            "no denied subject of {policy} is known; programs keep them if `LimiterBuilder::denied_subjects` says how many"
        );
    }
    let mut table = TextTable::default();
    for denied in found {
        table.push([
            subject::name(&denied.subject().to_string()).to_owned(),
            format!("at least {} denied", counted(denied.denials(), "call")),
        ]);
    }
    let shown = grouped(found.len() as u64);
    format!("{}{shown} of {} within this hour and the one before\n", table.text(), counted(all, "subject"))
}
