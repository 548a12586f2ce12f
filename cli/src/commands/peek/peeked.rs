//! What a peek says of the subjects of a call, for people and for scripts.

use std::time::Duration;

use serde_json::{Value, json};
use tallygate::admin::Subjects;
use tallygate::{Decision, Denial, Override, RejectionKind, RuleStatus};
use tallygate_rules::format_duration;

use crate::fleet::FleetPolicy;
use crate::table::TextTable;
use crate::varying::Varying;
use crate::{duration, number, overrides};

/// What a peek says of the subjects of a call.
pub(super) struct Peeked<'a> {
    pub(super) listed: &'a FleetPolicy<'a>,
    pub(super) subjects: &'a Subjects,
    /// The labels of the subjects that were not said.
    pub(super) missing: &'a [Option<String>],
    /// The labels of the subjects that the rules count, in the order of their positions.
    pub(super) labels: &'a [Option<String>],
    pub(super) decision: &'a Decision,
    pub(super) overrides: &'a [&'a Override],
}

impl Peeked<'_> {
    /// Whether a call would be admitted, as far as the counts of its rules are known; `None` where none is.
    pub(super) fn admitted(&self) -> Option<bool> {
        match self.decision {
            Decision::Denied(denial) if denial.rule().is_none_or(|rule| self.is_said(rule.position())) => Some(false),
            Decision::Denied(_) => None,
            Decision::Allowed(_) => {
                let is_known = self.missing.is_empty() && self.left_out().len() < self.decision.report().len();
                is_known.then_some(true)
            }
        }
    }

    /// Whether the subject was said that the rule at that position counts.
    fn is_said(&self, position: usize) -> bool {
        self.labels.get(position).is_none_or(|label| !self.missing.contains(label))
    }

    fn report(&self) -> impl Iterator<Item = &RuleStatus> {
        self.decision.report().iter().filter(|status| self.is_said(status.position()))
    }

    pub(super) fn text(&self) -> String {
        let mut table = TextTable::default();
        for status in self.report() {
            table.push(row(status, &self.listed.varying));
        }
        let verdict = match self.decision {
            _ if self.admitted().is_none() => "undecided".to_owned(),
            Decision::Allowed(_) => "admitted".to_owned(),
            Decision::Denied(denial) => denied(denial),
        };
        let shadow = if self.listed.described.is_shadow() { " (shadow: nobody is rejected)" } else { "" };
        let prefetch = match self.listed.described.prefetch() {
            Some(ahead) => {
                format!("what processes took ahead, for at most {}, counts as used\n", format_duration(ahead))
            }
            None => String::new(),
        };
        let overrides = self.overrides.iter().map(|one| match one.subject() {
            None => format!("override: {one}\n"),
            Some(_) => format!("override for this subject: {one}\n"),
        });
        let left_out = left_out(&self.left_out());
        let missing: String = self.missing.iter().map(|label| self.not_said(label.as_deref())).collect();
        format!("{verdict}{shadow}\n{left_out}{missing}{prefetch}{}{}", table.text(), overrides.collect::<String>())
    }

    pub(super) fn json(&self) -> Value {
        let denial = match self.decision {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => Some(denial),
        };
        let is_said = |label: Option<&str>| !self.missing.iter().any(|missing| missing.as_deref() == label);
        let others = self.subjects.others().filter(|(label, _)| is_said(Some(label)));
        let others: Vec<_> =
            others.map(|(label, subject)| json!({ "label": label, "subject": subject.to_string() })).collect();
        json!({
            "policy": self.listed.described.name(),
            "subject": is_said(None).then(|| self.subjects.main().to_string()),
            "others": others,
            "missing": self.missing.iter().map(|label| self.missing_json(label.as_deref())).collect::<Vec<_>>(),
            "admitted": self.admitted(),
            "denied": denial.map(json_of_denial),
            "prefetch_ms": self.listed.described.prefetch().map(duration::ms),
            "shadow": self.listed.described.is_shadow(),
            "rules": self.rules_json(),
            "overrides": self.overrides.iter().map(|one| overrides::json(one)).collect::<Vec<_>>(),
        })
    }

    /// `not said: network, which is {ip:subnet}; add its value, or --on network=…`
    fn not_said(&self, label: Option<&str>) -> String {
        let key = self.key(label).map(|key| format!(", which is {key}")).unwrap_or_default();
        match label {
            Some(label) => format!("not said: {label}{key}; add its value, or --on {label}=…\n"),
            None => format!("not said: the main subject{key}; add its value, or --subject …\n"),
        }
    }

    fn missing_json(&self, label: Option<&str>) -> Value {
        json!({ "label": label, "key": self.key(label) })
    }

    fn key(&self, label: Option<&str>) -> Option<&str> {
        match label {
            None => self.listed.described.key(),
            Some(label) => self.listed.described.subjects().find(|subject| subject.label() == label)?.key(),
        }
    }

    fn rules_json(&self) -> Vec<Value> {
        self.report().map(|status| json_of_rule(status, &self.listed.varying)).collect()
    }

    /// The positions of the rules whose count each call gives, but for one that denies the call whatever its count is.
    fn left_out(&self) -> Vec<usize> {
        let denying = match self.decision {
            Decision::Denied(denial) => denial.rule().map(|rule| rule.position()),
            Decision::Allowed(_) => None,
        };
        let varying = self.report().filter(|status| self.listed.varying.listed(status.rule()).is_some());
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

/// `0   1 per 1m   0 left   resets in 41s`, or `0   2 concurrent lease 30s   1 of 2 concurrent   leases end in 24s`.
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

/// `4 left`, or `4 used` where the count is the call's; of concurrent calls, how many there are.
fn left(status: &RuleStatus, varying: &Varying) -> String {
    let is_concurrency = status.rule().lease().is_some();
    let [limit, remaining] = [status.limit(), status.remaining()].map(number::grouped);
    match (varying.used(status).map(number::grouped), varying.listed(status.rule())) {
        (None, _) => String::new(),
        (Some(used), Some(_)) if is_concurrency => format!("{used} concurrent"),
        (Some(used), Some(_)) => format!("{used} used"),
        (Some(used), None) if is_concurrency => format!("{used} of {limit} concurrent"),
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
        "concurrent": used.filter(|_| status.rule().lease().is_some()),
        "reset_ms": varying.reset(status).map(duration::ms),
    })
}
