//! Where somebody stands, for people and for scripts.

use serde_json::{Value, json};
use tallygate::admin::Subjects;
use tallygate::{Decision, Denial, Override, RejectionKind, RuleStatus};

use crate::fleet::Listed;
use crate::table::Table;
use crate::{duration, number, overrides};

/// Where somebody stands.
pub(super) struct Standing<'a> {
    pub(super) listed: &'a Listed<'a>,
    pub(super) subjects: &'a Subjects,
    pub(super) decision: &'a Decision,
    pub(super) overrides: &'a [&'a Override],
}

impl Standing<'_> {
    pub(super) fn text(&self) -> String {
        let mut table = Table::default();
        for status in self.decision.report() {
            table.push(row(status));
        }
        let verdict = match self.decision {
            Decision::Allowed(_) => "admitted".to_owned(),
            Decision::Denied(denial) => denied(denial),
        };
        let shadow = if self.listed.described.is_shadow() { " (shadow: nobody is rejected)" } else { "" };
        let overrides = self.overrides.iter().map(|one| match one.subject() {
            None => format!("override: {one}\n"),
            Some(_) => format!("override for this subject: {one}\n"),
        });
        format!("{verdict}{shadow}\n{}{}", table.text(), overrides.collect::<String>())
    }

    pub(super) fn json(&self) -> Value {
        let denial = match self.decision {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => Some(denial),
        };
        let others = self.subjects.others();
        let others: Vec<_> =
            others.map(|(label, subject)| json!({ "label": label, "subject": subject.to_string() })).collect();
        json!({
            "policy": self.listed.described.name(),
            "subject": self.subjects.main().to_string(),
            "others": others,
            "admitted": denial.is_none(),
            "denied": denial.map(json_of_denial),
            "shadow": self.listed.described.is_shadow(),
            "rules": self.decision.report().iter().map(json_of_rule).collect::<Vec<_>>(),
            "overrides": self.overrides.iter().map(|one| overrides::json(one)).collect::<Vec<_>>(),
        })
    }
}

/// `denied for 41s by rule 0`, or `denied by rule 0 until a call is over`.
fn denied(denial: &Denial) -> String {
    let wait = denial.retry_after().map(duration::shown);
    let verb = if denial.kind() == RejectionKind::Banned { "banned" } else { "denied" };
    let time = wait.map_or_else(|| "for good".to_owned(), |wait| format!("for {wait}"));
    let rule = denial.rule().map(|rule| {
        let name = rule.name().map(|name| format!(" ({name})")).unwrap_or_default();
        format!(" by rule {}{name}", rule.position())
    });
    let rule = rule.unwrap_or_default();
    match denial.kind() {
        RejectionKind::Duplicate => format!("{verb} {time}{rule}, as a duplicate"),
        // Nobody knows when that is.
        RejectionKind::Concurrency if denial.retry_after().is_some() => format!("{verb}{rule} until a call is over"),
        _ => format!("{verb} {time}{rule}"),
    }
}

/// How many calls are under way, if that is what the rule limits.
fn under_way(status: &RuleStatus) -> Option<u64> {
    status.rule().lease().map(|_| status.limit().saturating_sub(status.remaining()))
}

/// `0   1 per 1m   0 left   resets in 41s`, or `0   2 concurrent lease 30s   1 of 2 under way   leases end in 24s`.
fn row(status: &RuleStatus) -> [String; 4] {
    let left = if status.rule().is_varying() {
        "the count is the call's".to_owned()
    } else if let Some(under_way) = under_way(status) {
        format!("{} of {} under way", number::grouped(under_way), number::grouped(status.limit()))
    } else {
        format!("{} left", number::grouped(status.remaining()))
    };
    let verb = if status.rule().lease().is_some() { "leases end" } else { "resets" };
    let reset = if status.reset().is_zero() {
        "unused".to_owned()
    } else {
        format!("{verb} in {}", duration::shown(status.reset()))
    };
    [status.position().to_string(), status.rule().to_string(), left, reset]
}

fn json_of_denial(denial: &Denial) -> Value {
    json!({
        "kind": denial.kind().as_str(),
        "rule": denial.rule().map(|rule| rule.position()),
        "retry_after_ms": denial.retry_after().map(duration::ms),
    })
}

fn json_of_rule(status: &RuleStatus) -> Value {
    let is_known = !status.rule().is_varying();
    json!({
        "position": status.position(),
        "name": status.rule().name(),
        "rule": status.rule().to_string(),
        "limit": is_known.then(|| status.limit()),
        "remaining": is_known.then(|| status.remaining()),
        "under_way": under_way(status).filter(|_| is_known),
        "reset_ms": duration::ms(status.reset()),
    })
}
