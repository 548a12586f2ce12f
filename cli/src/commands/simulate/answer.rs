//! The decisions, for people and for scripts.

use serde_json::{Value, json};
use tallygate::simulation::{Comparison, Denials, Summary};

use crate::duration;
use crate::number::{counted, grouped};
use crate::output::Output;
use crate::table::TextTable;

/// `9,214 of 10,000 admitted; denied: rule 0 771, rule 2 15; longest wait 21h`.
pub(super) fn of_one(policy: &str, summary: &Summary, skipped: u64) -> Output {
    let json = json!({ "policy": policy, "decided": decided(summary), "skipped_rows": skipped });
    Output::done(format!("{}\n{}", line(summary), left_out(skipped)), json)
}

/// Returns a line for each file, and the calls that they decide differently.
pub(super) fn of_two(policy: &str, files: &[String], comparison: &Comparison, skipped: u64) -> Output {
    let mut table = TextTable::default();
    for (file, summary) in files.iter().zip([comparison.before(), comparison.after()]) {
        table.push([file.clone(), line(summary)]);
    }
    let changes = [("newly denied", comparison.newly_denied()), ("newly admitted", comparison.newly_admitted())];
    for (change, denials) in changes {
        let reasons = reasons(denials);
        let by = if reasons.is_empty() { String::new() } else { format!(": {reasons}") };
        table.push([change.to_owned(), format!("{}{by}", counted(denials.total(), "call"))]);
    }
    let json = json!({
        "policy": policy,
        "before": decided(comparison.before()),
        "after": decided(comparison.after()),
        "newly_denied": denied(comparison.newly_denied()),
        "newly_admitted": denied(comparison.newly_admitted()),
        "skipped_rows": skipped,
    });
    Output::done(table.text() + &left_out(skipped), json)
}

fn line(summary: &Summary) -> String {
    let admitted = format!("{} of {} admitted", grouped(summary.admitted()), grouped(summary.calls()));
    let denied = (summary.denied() > 0).then(|| format!("denied: {}", reasons(summary.denials())));
    let wait = summary.longest_wait().map(|wait| format!("longest wait {}", duration::shown(wait)));
    let never = (summary.never() > 0).then(|| format!("never admitted: {}", grouped(summary.never())));
    let tried = summary.denied_in_shadow();
    let tried = (tried.total() > 0).then(|| format!("denied in shadow: {}", reasons(tried)));
    let parts = [Some(admitted), denied, wait, never, tried];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `rule 0 771, rule 2 (daily) 15`.
fn reasons(denials: &Denials) -> String {
    let rules = denials.rules().enumerate().map(|(position, (rule, number))| {
        let name = rule.name().map(|name| format!(" ({name})")).unwrap_or_default();
        (format!("rule {position}{name}"), number)
    });
    let others = [("ban".to_owned(), denials.by_ban()), ("pause".to_owned(), denials.by_pause())];
    let all = rules.chain(others).filter(|(_, number)| *number > 0);
    all.map(|(reason, number)| format!("{reason} {}", grouped(number))).collect::<Vec<_>>().join(", ")
}

fn left_out(skipped: u64) -> String {
    if skipped == 0 { String::new() } else { format!("{} left out\n", counted(skipped, "row")) }
}

fn decided(summary: &Summary) -> Value {
    json!({
        "calls": summary.calls(),
        "admitted": summary.admitted(),
        "denied": denied(summary.denials()),
        "denied_in_shadow": denied(summary.denied_in_shadow()),
        "never_admitted": summary.never(),
        "longest_wait_ms": summary.longest_wait().map(duration::ms),
    })
}

fn denied(denials: &Denials) -> Value {
    let rules = denials.rules().enumerate().map(|(position, (rule, number))| {
        json!({ "position": position, "name": rule.name(), "rule": rule.to_string(), "denied": number })
    });
    json!({
        "total": denials.total(),
        "rules": rules.collect::<Vec<_>>(),
        "ban": denials.by_ban(),
        "pause": denials.by_pause(),
    })
}
