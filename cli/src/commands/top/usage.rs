//! The use of rules by subjects, and the order of subjects.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use tallygate::admin::__shared::RuleState;
use tallygate::admin::__shared::json::with_unit;
use tallygate::{Decision, Denial, RejectionKind, Rule, Subject, TokenBucket};

use super::scope::{SubjectGroup, SubjectScope};
use crate::table::TextTable;
use crate::{duration, number, subject};

/// The order of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Who has used most of a rule
    Used,
    /// Who is denied longest
    Wait,
    /// Who was denied most often within this hour and the one before, if the programs keep denied subjects
    Denied,
}

/// The subjects that come first. `subjects` is the number of all.
pub(super) struct Ranking {
    /// For people.
    pub(super) text: String,
    /// For scripts.
    pub(super) top: Vec<Value>,
    pub(super) subjects: u64,
}

/// The numbers by which subjects are ordered, the greatest first.
type Rank = (u64, u64);

/// How much a subject has used of its rules, and whether it is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Usage {
    policy: String,
    label: Option<String>,
    subject: String,
    /// The share of the most used rule, in thousandths; `None` where each call gives the counts. Rules in shadow count
    /// only if no other rule is shown.
    share: Option<u64>,
    rules: Vec<RuleState>,
    /// Why it is denied, or would be denied without shadow.
    denied: Option<RejectionKind>,
    /// Whether the policy, or each of its rules, is in shadow, so that no call is denied.
    is_shadow: bool,
    /// How long it is denied; for concurrent calls, at most. `None` if it is not denied, or denied for good.
    wait: Option<Duration>,
}

impl Usage {
    /// Reads a peek at a subject, for the rules that are shown, and for a denial by no rule if `shows_without_rule` says so of its kind.
    pub(in crate::commands) fn new(
        place: SubjectGroup<'_>,
        subject: &Subject,
        decision: &Decision,
        is_shown: impl Fn(usize, &Rule) -> bool,
        shows_without_rule: impl Fn(RejectionKind) -> bool,
        is_shadow: bool,
    ) -> Self {
        let varying = &place.listed.varying;
        let denial = match decision {
            Decision::Denied(denial) => Some(denial),
            Decision::Allowed(_) => None,
        };
        let denies = |denial: &&Denial| match denial.rule() {
            Some(rule) => is_shown(rule.position(), rule.rule()),
            None => shows_without_rule(denial.kind()),
        };
        let denial = denial.filter(denies);
        let report = decision.report().iter().chain(decision.shadow_report());
        let report = report.filter(|status| is_shown(status.position(), status.rule()));
        let mut rules: Vec<_> = report.map(|status| varying.state(status)).collect();
        rules.sort_by_key(|rule| rule.position);
        // The report has rules in shadow only if all rules are in shadow, as by an override.
        let are_all_tried = decision.report().iter().any(|status| status.rule().is_shadow());
        Self {
            policy: place.listed.described.name().to_owned(),
            label: place.label.map(str::to_owned),
            subject: subject.to_string(),
            share: share(&rules),
            rules,
            denied: denial.map(Denial::kind),
            is_shadow: is_shadow || are_all_tried,
            wait: denial.and_then(Denial::retry_after),
        }
    }

    /// Returns the rank of the subject, or `None` if it is left out.
    fn rank(&self, by: By) -> Option<Rank> {
        let used = self.rules.iter().filter_map(|rule| rule.used).max().unwrap_or_default();
        let share = self.share.unwrap_or_default();
        match by {
            // Who is paused or banned can use no more, and may have used nothing lately.
            By::Used if self.is_closed() => Some((share.max(1_000), 0)),
            By::Used => (used > 0).then_some((share, used)),
            // That order comes from the lists that the programs publish.
            By::Denied => None,
            By::Wait => self.denied.is_some().then(|| (self.wait.map_or(u64::MAX, duration::ms), share)),
        }
    }

    /// Whether the subject is denied by something else than its use.
    fn is_closed(&self) -> bool {
        self.is_denied() && matches!(self.denied, Some(RejectionKind::Paused | RejectionKind::Banned))
    }

    pub(in crate::commands) fn policy(&self) -> &str {
        &self.policy
    }

    pub(in crate::commands) fn is_denied(&self) -> bool {
        self.denied.is_some() && !self.is_shadow
    }

    /// Returns the cells of a row: the subject, its greatest share, its use of each rule, and how long it is denied.
    pub(in crate::commands) fn cells(&self) -> [String; 4] {
        let wait = match (self.denied, self.wait) {
            (None, _) => String::new(),
            (Some(RejectionKind::Concurrency), Some(_)) => "denied until a call is over".to_owned(),
            (Some(RejectionKind::Paused), Some(wait)) => format!("paused for {}", duration::shown(wait)),
            (Some(_), Some(wait)) => format!("denied for {}", duration::shown(wait)),
            (Some(_), None) => "denied for good".to_owned(),
        };
        let wait = if self.is_shadow && self.denied.is_some() { format!("would be {wait}") } else { wait };
        let share = self.share.map(|share| format!("{} %", share / 10)).unwrap_or_default();
        let rules = self.rules.iter().filter_map(in_words).collect::<Vec<_>>();
        [subject::name(&self.subject).to_owned(), share, rules.join(" · "), wait]
    }

    pub(in crate::commands) fn json(&self) -> Value {
        let rule = |state: &RuleState| {
            let document = json!({
                "position": state.position,
                "rule": state.rule.to_string(),
                "used": state.used,
                "limit": state.limit,
                "shadow": state.rule.is_shadow(),
            });
            with_unit(document, &state.rule)
        };
        json!({
            "policy": self.policy,
            "label": self.label,
            "subject": self.subject,
            "share": self.share,
            "denied": self.denied.is_some(),
            "shadow": self.is_shadow,
            "retry_after_ms": self.wait.map(duration::ms),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
        })
    }
}

/// Returns the share of the most used rule, in thousandths.
fn share(states: &[RuleState]) -> Option<u64> {
    let are_all_tried = states.iter().all(|state| state.rule.is_shadow());
    states.iter().filter(|state| are_all_tried || !state.rule.is_shadow()).filter_map(thousandths).max()
}

/// `1 of 5 per 1h`, or `1 of 2 concurrent`; `3 of n per 1h` where each call gives the count.
fn in_words(state: &RuleState) -> Option<String> {
    let used = number::grouped(state.used?);
    let shown = state.limit.map_or_else(|| "n".to_owned(), number::grouped);
    let what = if state.rule.lease().is_some() { format!("{shown} concurrent") } else { grouped_rule(state) };
    Some(format!("{used} of {what}"))
}

/// Returns the rule with the thousands of its numbers apart.
fn grouped_rule(state: &RuleState) -> String {
    let numbers = [state.limit, Some(state.rule.count()), state.rule.bucket().and_then(TokenBucket::initial)];
    let grouped = |word: &str| match word.parse() {
        Ok(number) if numbers.contains(&Some(number)) => number::grouped(number),
        _ => word.to_owned(),
    };
    state.rule.to_string().split(' ').map(grouped).collect::<Vec<_>>().join(" ")
}

/// Returns how much of a rule is used, in thousandths.
fn thousandths(state: &RuleState) -> Option<u64> {
    let share = u128::from(state.used?) * 1_000 / u128::from(state.limit?.max(1));
    Some(u64::try_from(share).unwrap_or(u64::MAX))
}

/// The subjects that come first, so far.
#[derive(Debug)]
pub(in crate::commands) struct Best {
    by: By,
    limit: usize,
    /// Ordered by rank, the greatest first, then by name.
    kept: BTreeMap<(Reverse<Rank>, [String; 3]), Usage>,
}

impl Best {
    pub(in crate::commands) fn new(by: By, limit: usize) -> Self {
        Self { by, limit, kept: BTreeMap::new() }
    }

    pub(in crate::commands) fn add(&mut self, usage: Usage) {
        let Some(rank) = usage.rank(self.by) else { return };
        let name = [usage.subject.clone(), usage.policy.clone(), usage.label.clone().unwrap_or_default()];
        self.kept.insert((Reverse(rank), name), usage);
        if self.kept.len() > self.limit {
            self.kept.pop_last();
        }
    }

    /// Returns the subjects in their order.
    pub(in crate::commands) fn found(self) -> Vec<Usage> {
        self.kept.into_values().collect()
    }
}

/// Writes subjects as a table, with their policies if there are several.
pub(in crate::commands) fn table(found: &[Usage], scope: &SubjectScope<'_>) -> TextTable {
    rows(found, scope.only().is_none())
}

fn rows(found: &[Usage], shows_policy: bool) -> TextTable {
    let mut table = TextTable::default();
    for usage in found {
        let place = place_cells(&usage.policy, usage.label.as_deref(), shows_policy);
        table.push(place.into_iter().chain(usage.cells()));
    }
    table
}

/// Returns the cells for the policy and the label, which are empty if all rows share them.
pub(in crate::commands) fn place_cells(policy: &str, label: Option<&str>, is_shown: bool) -> [String; 2] {
    match label {
        _ if !is_shown => [String::new(), String::new()],
        Some(label) => [policy.to_owned(), format!("on {label}")],
        None => [policy.to_owned(), String::new()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(subject: &str, used: u64, wait: Option<u64>) -> Usage {
        let rule = "10 per 1m".parse().unwrap();
        let rule = RuleState { position: 0, rule, limit: Some(10), remaining: None, used: Some(used), reset: None };
        Usage {
            policy: "sms.send".to_owned(),
            label: None,
            subject: subject.to_owned(),
            share: thousandths(&rule),
            rules: vec![rule],
            denied: wait.map(|_| RejectionKind::Limited),
            is_shadow: false,
            wait: wait.map(Duration::from_secs),
        }
    }

    fn best(by: By, limit: usize) -> Vec<String> {
        let mut best = Best::new(by, limit);
        for one in [usage("d", 0, None), usage("b", 5, None), usage("c", 10, Some(3)), usage("a", 5, Some(9))] {
            best.add(one);
        }
        best.found().into_iter().map(|usage| usage.subject).collect()
    }

    #[test]
    fn the_first_are_kept_and_equal_ones_are_ordered_by_name() {
        assert_eq!(best(By::Used, 9), ["c", "a", "b"]);
        assert_eq!(best(By::Used, 2), ["c", "a"]);
        assert_eq!(best(By::Wait, 9), ["a", "c"]);
        assert_eq!(best(By::Wait, 0), [""; 0]);
    }

    #[test]
    fn who_is_paused_or_banned_stands_before_those_who_have_used_less_than_all() {
        for kind in [RejectionKind::Paused, RejectionKind::Banned] {
            let mut best = Best::new(By::Used, 9);
            best.add(usage("busy", 9, None));
            best.add(Usage { denied: Some(kind), ..usage("closed", 0, Some(3)) });
            best.add(Usage { denied: Some(kind), is_shadow: true, ..usage("tried", 0, Some(3)) });
            assert_eq!(best.found().iter().map(|usage| &*usage.subject).collect::<Vec<_>>(), ["closed", "busy"]);
        }
    }

    #[test]
    fn the_thousands_of_each_number_of_a_rule_stand_apart() {
        let shown = |rule: &str, limit| {
            let rule = rule.parse().unwrap();
            let state = RuleState { position: 0, rule, limit, remaining: None, used: Some(1_234), reset: None };
            in_words(&state).unwrap()
        };
        assert_eq!(shown("10000 per 1s burst 1000", Some(1_000)), "1,234 of 10,000 per 1s burst 1,000");
        assert_eq!(shown("1000 per 1s burst 10000", Some(10_000)), "1,234 of 1,000 per 1s burst 10,000");
        let filled = shown("1000 per 1s burst 10000 initial 5000", Some(10_000));
        assert_eq!(filled, "1,234 of 1,000 per 1s burst 10,000 initial 5,000");
        assert_eq!(
            shown("about 60000 tokens per 1m as t60000", Some(60_000)),
            "1,234 of about 60,000 tokens per 1m as t60000"
        );
        assert_eq!(shown("5000 concurrent lease 30s", Some(5_000)), "1,234 of 5,000 concurrent");
        assert_eq!(shown("n per 1h", None), "1,234 of n per 1h");
    }

    #[test]
    fn a_line_says_what_was_used_and_how_long_it_is_denied() {
        let line = "c   100 %   10 of 10 per 1m   denied for 3s\n";
        assert_eq!(rows(&[usage("c", 10, Some(3))], false).text(), line);
        let tried = Usage { is_shadow: true, ..usage("c", 10, Some(3)) };
        assert_eq!(rows(&[tried], false).text(), "c   100 %   10 of 10 per 1m   would be denied for 3s\n");
        let paused = Usage { denied: Some(RejectionKind::Paused), ..usage("c", 1, Some(3)) };
        assert_eq!(rows(&[paused], false).text(), "c   10 %   1 of 10 per 1m   paused for 3s\n");
        let on_network = Usage { label: Some("network".to_owned()), ..usage("c", 10, Some(3)) };
        assert_eq!(rows(&[on_network], true).text(), format!("sms.send   on network   {line}"));
    }
}
