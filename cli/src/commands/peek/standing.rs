//! Where somebody stands, for people and for scripts.

use std::time::Duration;

use serde_json::{Value, json};
use tallygate::admin::Subjects;
use tallygate::{Decision, Denial, Override, RejectionKind, RuleStatus};

use crate::fleet::Listed;
use crate::table::Table;
use crate::varying::Varying;
use crate::{duration, number, overrides};

/// Where somebody stands.
pub(super) struct Standing<'a> {
    pub(super) listed: &'a Listed<'a>,
    pub(super) subjects: &'a Subjects,
    pub(super) decision: &'a Decision,
    pub(super) overrides: &'a [&'a Override],
}

impl Standing<'_> {
    /// Whether a call would be admitted, as far as the counts of its rules are known; `None` where none is.
    pub(super) fn admitted(&self) -> Option<bool> {
        match self.decision {
            Decision::Denied(_) => Some(false),
            Decision::Allowed(_) => (self.left_out().len() < self.decision.report().len()).then_some(true),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut table = Table::default();
        for status in self.decision.report() {
            table.push(row(status, &self.listed.varying));
        }
        let verdict = match self.decision {
            Decision::Allowed(_) if self.admitted().is_none() => "undecided".to_owned(),
            Decision::Allowed(_) => "admitted".to_owned(),
            Decision::Denied(denial) => denied(denial),
        };
        let shadow = if self.listed.described.is_shadow() { " (shadow: nobody is rejected)" } else { "" };
        let overrides = self.overrides.iter().map(|one| match one.subject() {
            None => format!("override: {one}\n"),
            Some(_) => format!("override for this subject: {one}\n"),
        });
        let left_out = left_out(&self.left_out());
        format!("{verdict}{shadow}\n{left_out}{}{}", table.text(), overrides.collect::<String>())
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
            "admitted": self.admitted(),
            "denied": denial.map(json_of_denial),
            "shadow": self.listed.described.is_shadow(),
            "rules": self.rules_json(),
            "overrides": self.overrides.iter().map(|one| overrides::json(one)).collect::<Vec<_>>(),
        })
    }

    fn rules_json(&self) -> Vec<Value> {
        self.decision.report().iter().map(|status| json_of_rule(status, &self.listed.varying)).collect()
    }

    /// The positions of the rules whose count each call gives, but for one that denies the call whatever its count is.
    fn left_out(&self) -> Vec<usize> {
        let denying = match self.decision {
            Decision::Denied(denial) => denial.rule().map(|rule| rule.position()),
            Decision::Allowed(_) => None,
        };
        let report = self.decision.report().iter();
        let varying = report.filter(|status| self.listed.varying.listed(status.rule()).is_some());
        varying.map(RuleStatus::position).filter(|&position| denying != Some(position)).collect()
    }
}

/// `this leaves out rule 0, as its count is the call's`; nothing if no rule is left out.
fn left_out(positions: &[usize]) -> String {
    match positions {
        [] => String::new(),
        [only] => format!("this leaves out rule {only}, as its count is the call's\n"),
        [first @ .., last] => {
            let first = first.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("this leaves out the rules {first} and {last}, as their counts are the call's\n")
        }
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

/// `0   1 per 1m   0 left   resets in 41s`, or `0   2 concurrent lease 30s   1 of 2 under way   leases end in 24s`.
fn row(status: &RuleStatus, varying: &Varying) -> [String; 4] {
    let verb = if status.rule().lease().is_some() { "leases end" } else { "resets" };
    let reset = match varying.reset(status) {
        None => String::new(),
        Some(Duration::ZERO) => "unused".to_owned(),
        Some(reset) => format!("{verb} in {}", duration::shown(reset)),
    };
    let listed = varying.listed(status.rule()).unwrap_or(status.rule());
    [status.position().to_string(), listed.to_string(), left(status, varying), reset]
}

/// `4 left`, or `4 used` where the count is the call's; of calls under way, how many there are.
fn left(status: &RuleStatus, varying: &Varying) -> String {
    let is_concurrency = status.rule().lease().is_some();
    let [limit, remaining] = [status.limit(), status.remaining()].map(number::grouped);
    match (varying.used(status).map(number::grouped), varying.listed(status.rule())) {
        (None, _) => String::new(),
        (Some(used), Some(_)) if is_concurrency => format!("{used} under way"),
        (Some(used), Some(_)) => format!("{used} used"),
        (Some(used), None) if is_concurrency => format!("{used} of {limit} under way"),
        (Some(_), None) => format!("{remaining} left"),
    }
}

fn json_of_denial(denial: &Denial) -> Value {
    json!({
        "kind": denial.kind().as_str(),
        "rule": denial.rule().map(|rule| rule.position()),
        "retry_after_ms": denial.retry_after().map(duration::ms),
    })
}

fn json_of_rule(status: &RuleStatus, varying: &Varying) -> Value {
    let listed = varying.listed(status.rule());
    let used = varying.used(status);
    json!({
        "position": status.position(),
        "name": status.rule().name(),
        "rule": listed.unwrap_or(status.rule()).to_string(),
        "limit": listed.is_none().then(|| status.limit()),
        "used": used,
        "remaining": listed.is_none().then(|| status.remaining()),
        "under_way": used.filter(|_| status.rule().lease().is_some()),
        "reset_ms": varying.reset(status).map(duration::ms),
    })
}
