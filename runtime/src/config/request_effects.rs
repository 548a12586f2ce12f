//! The settings of requests in a file besides their rules: exemptions, cost, plans, refunds and responses.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use tallygate_rules::{CALLS, Role, Rule, check_unit, nearest, remedy};

use super::lines::{At, Lines};
use super::plans::{ListedPlans, Plans, check_count};
use super::rules::{RuleList, are_known, known_rules};
use super::table::Table;
use crate::context::ContextKey;
use crate::media_type::MediaType;
use crate::policy::{PlanCounts, Policy};
use crate::request_pattern::PathPattern;

const COST: &str = "cost = 5";
const COSTS: &str = "cost = { tokens = 500 }";
const COST_IN_CALLS: &str = "cost = { calls = 5 }";
const REFUND_IF: &str = r#"refund_if = "success""#;
const PLAN: &str = r#"plan = "{@plan}""#;
const REJECT: &str = r#"reject = { status = 403, body = "not now" }"#;
const EXEMPTS_ALL: &str = "this exempts all requests of the policy; exempt fewer paths, or remove the policy";
const EXEMPT_PATHS: &str = r#"exempt_paths = ["/health"]"#;

/// The settings of requests in a file besides their rules.
#[derive(Debug)]
pub(crate) struct RequestEffects {
    pub(super) exempt_paths: Vec<PathPattern>,
    pub(crate) costs: Vec<(String, u64)>,
    pub(crate) refund_if: Option<RefundedStatus>,
    pub(crate) reject: Option<OwnResponse>,
    /// The name of the value of the context that names the plan.
    plan: Option<At<String>>,
    pub(super) plans: Plans,
    planned: Option<PlannedRules>,
}

/// The rules of a policy, of which plans set the counts of some.
#[derive(Debug)]
struct PlannedRules {
    /// The positions of those whose counts plans set.
    positions: BTreeSet<usize>,
    /// The counts of all rules for requests without a plan.
    counts: Vec<u64>,
}

/// The requests that do not count, by the status of their responses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RefundedStatus {
    /// Below 400.
    Success,
    /// From 400 on.
    Failure,
}

#[derive(Clone, Debug)]
pub(crate) struct OwnResponse {
    status: StatusCode,
    content_type: HeaderValue,
    body: String,
}

impl RequestEffects {
    /// Takes the settings out of the table of a policy. `paths` are those of its `match`, and `ahead` is its `prefetch`.
    pub(super) fn take(
        table: &mut Table<'_>,
        paths: Option<&[PathPattern]>,
        rules: Option<&RuleList>,
        ahead: Option<Duration>,
        listed: &Arc<ListedPlans>,
        lines: &mut Lines<'_>,
    ) -> Self {
        let (plan, plans) = plans(table, rules, listed, lines);
        let effects = Self {
            plan,
            plans,
            planned: None,
            exempt_paths: exempt_paths(table, paths, lines),
            costs: costs(table, rules, lines),
            refund_if: refund_if(table, lines),
            reject: table.table("reject", REJECT, lines).and_then(|table| reject(table, lines)),
        };
        effects.check_plans(rules, ahead, lines);
        effects
    }

    /// Reports counts of plans in units that no rule counts, and plans whose requests are never admitted, as each costs
    /// more than their count, or than a bucket of which calls are taken ahead holds. A count of 0 is allowed: it closes the plan.
    fn check_plans(&self, rules: Option<&RuleList>, ahead: Option<Duration>, lines: &mut Lines<'_>) {
        let rules: Vec<_> = known_rules(rules).cloned().collect();
        let Some(plan) = self.plan.as_ref().filter(|_| rules.iter().any(is_planned)) else { return };
        for At { value: unit, place } in &self.plans.units {
            let known: BTreeSet<_> = rules.iter().filter(|rule| is_planned(rule)).map(Rule::counted).collect();
            if !known.contains(&**unit) {
                let known: Vec<_> = known.into_iter().collect();
                let remedy = remedy(nearest(unit, known.iter().copied()), "the rules count", &known);
                lines.report(*place, format!("no rule counts `{unit}`, so this plan changes nothing of it; {remedy}"));
            }
        }
        let plans = self.plans.counts();
        // Mistaken counts are reported where they stand.
        let has_counts = plans.values().any(|counts| !matches!(counts, PlanCounts::ByUnit(none) if none.is_empty()));
        if self.plans.units.is_empty() && has_counts && self.planned_positions(&rules).is_empty() {
            let message = "no plan has a count in a unit that these rules count, so `plan` changes nothing; remove it, or add \
                           such counts to `plans`";
            lines.report(plan.place, message);
        }
        for (name, At { value: counts, place }) in self.plans.counts_at(plan.place) {
            let planned = counts_by_position(counts, &rules).into_iter();
            let planned = planned.filter_map(|(at, count)| Some(rules.get(at)?.clone().with_count(count)));
            for rule in planned {
                if let Err(mistake) = check_count(name, rule.count(), &rule) {
                    lines.report(place, mistake);
                } else if let Some(why) = self.why_never(&rule, ahead) {
                    lines.report(place, format!("no request of plan `{name}` is ever admitted: {why}"));
                }
            }
        }
    }

    /// Returns why a rule admits no request; `None` if it admits some, or none on purpose, with a count of 0.
    fn why_never(&self, rule: &Rule, ahead: Option<Duration>) -> Option<String> {
        let (unit, count) = (rule.counted(), rule.count());
        let cost = self.cost_of(unit).filter(|_| count > 0)?;
        let costs = if unit == CALLS { cost.to_string() } else { format!("{cost} {unit}") };
        // A bucket with a capacity of its own admits as much, whatever its count is.
        if count < cost && rule.greatest_cost() == count {
            return Some(format!("each costs {costs}, and its count is {count}; raise the count, or lower the `cost`"));
        }
        let left = ahead.and_then(|ahead| rule.ahead(ahead)?.capacity()).filter(|left| *left < cost)?;
        Some(format!(
            "each costs {costs}, and `prefetch` leaves {left} of the tokens of `{rule:#}`; raise its `capacity`, shorten \
             `prefetch`, or lower the `cost`"
        ))
    }

    /// Returns what a request costs in a unit; `None` if nothing says so.
    pub(super) fn cost_of(&self, unit: &str) -> Option<u64> {
        self.costs.iter().find(|(named, _)| named == unit).map(|(_, cost)| *cost)
    }

    pub(super) fn plan_value(&self) -> Option<At<String>> {
        self.plan.clone()
    }

    /// Returns the policy as tools show it: where a plan sets a count, each request gives it.
    pub(super) fn plan(&mut self, policy: Policy) -> Policy {
        let positions = self.planned_positions(policy.rules());
        if self.plan.is_none() || positions.is_empty() {
            return policy;
        }
        let planned = policy.with_varying_counts(|at| positions.contains(&at));
        self.planned = Some(PlannedRules { positions, counts: policy.rules().iter().map(Rule::count).collect() });
        planned
    }

    /// Returns the positions of the rules whose counts plans set.
    fn planned_positions(&self, rules: &[Rule]) -> BTreeSet<usize> {
        let plans = self.plans.counts();
        plans.values().flat_map(|counts| counts_by_position(counts, rules)).map(|(position, _)| position).collect()
    }

    /// Returns the counts of all plans by their names, if plans set counts. Where a plan gives none, it has the count in the
    /// rules.
    pub(super) fn plan_counts(&self, policy: &Policy) -> BTreeMap<&str, PlanCounts> {
        let Some(planned) = &self.planned else { return BTreeMap::new() };
        let given = self.plans.counts();
        let whole = |plan| {
            let counts = planned.counts_of(given.get(plan).copied(), policy);
            let mut set = planned.positions.iter().filter_map(|&at| Some((policy.rules().get(at)?, *counts.get(at)?)));
            let is_by_unit = given.values().any(|counts| matches!(counts, PlanCounts::ByUnit(_)));
            if is_by_unit {
                PlanCounts::ByUnit(set.map(|(rule, count)| (rule.counted().to_owned(), count)).collect())
            } else {
                PlanCounts::One(set.next().map_or(0, |(_, count)| count))
            }
        };
        self.plans.names().chain(given.keys().copied()).map(|plan| (plan, whole(plan))).collect()
    }

    /// Returns the policy of a request, with the counts of its plan, or with those in the rules if it has none.
    /// `value` finds a value of the context by its name. `None` if no plan sets a count.
    pub(crate) fn planned(&self, policy: &Policy, value: impl FnOnce(&str) -> Option<String>) -> Option<Policy> {
        let planned = self.planned.as_ref()?;
        let plan = value(&self.plan.as_ref()?.value);
        let counts = plan.and_then(|plan| self.plans.of(policy.name(), &plan));
        Some(policy.with_counts(planned.counts_of(counts, policy)))
    }
}

impl PlannedRules {
    /// Returns the counts of all rules for requests of a plan with these counts.
    fn counts_of(&self, plan: Option<&PlanCounts>, policy: &Policy) -> Vec<u64> {
        let mut counts = self.counts.clone();
        for (position, set) in plan.into_iter().flat_map(|plan| counts_by_position(plan, policy.rules())) {
            if let Some(count) = counts.get_mut(position) {
                *count = set;
            }
        }
        counts
    }
}

/// Returns the positions of the rules whose counts a plan sets, with these counts: of the first rule of each unit. One count is
/// that of calls, or of the first rule if none counts calls.
fn counts_by_position(plan: &PlanCounts, rules: &[Rule]) -> Vec<(usize, u64)> {
    let planned = rules.iter().filter(|rule| is_planned(rule));
    let first = |unit: &str| rules.iter().position(|rule| is_planned(rule) && rule.counted() == unit);
    match plan {
        PlanCounts::One(count) => first(PlanCounts::unit_of_one(planned)).map(|at| (at, *count)).into_iter().collect(),
        PlanCounts::ByUnit(counts) => counts.iter().filter_map(|(unit, count)| Some((first(unit)?, *count))).collect(),
    }
}

/// Whether a plan may set the count of a rule.
fn is_planned(rule: &Rule) -> bool {
    rule.role() == Role::Limit && !rule.is_shadow()
}

fn plans(
    table: &mut Table<'_>,
    rules: Option<&RuleList>,
    listed: &Arc<ListedPlans>,
    lines: &mut Lines<'_>,
) -> (Option<At<String>>, Plans) {
    let plan = table.text("plan", PLAN, lines);
    let plans = Plans::take(table, listed, lines);
    match (&plan, plans.place) {
        (Some(plan), _) if plans.is_empty() => {
            lines.report(plan.place, "`plan` needs `plans`, like `plans = { free = 100 }`");
        }
        (None, Some(place)) => lines.report(place, format!("`plans` of requests need a `plan`, like `{PLAN}`")),
        (Some(plan), own) if rules.is_some_and(are_known) && !known_rules(rules).any(is_planned) => {
            let place = own.unwrap_or(plan.place);
            lines.report(place, "`plans` need a rule whose count they set, like `rules = [\"100 per 1h\"]`");
        }
        _ => {}
    }
    let name = |plan: At<&str>| {
        let name = plan.value.strip_prefix("{@").and_then(|name| name.strip_suffix('}'));
        // Alternatives are compared with each other, so they are refused before.
        let name = name.filter(|name| !name.contains([':', '{', '|']) && ContextKey::parse(plan.value).is_ok());
        let message = || format!("`plan` must be one value of the context, like `{PLAN}`");
        let name = lines.ok_or_report(plan.place, name.map(str::to_owned).ok_or_else(message))?;
        Some(At { value: name, place: plan.place })
    };
    (plan.and_then(name), plans)
}

impl OwnResponse {
    /// Returns this response in place of the usual one, whose other fields it keeps.
    pub(crate) fn in_place_of(&self, usual: Response<String>) -> Response<String> {
        let mut response = usual.map(|_| self.body.clone());
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, self.content_type.clone());
        response
    }
}

fn exempt_paths(table: &mut Table<'_>, paths: Option<&[PathPattern]>, lines: &mut Lines<'_>) -> Vec<PathPattern> {
    let texts = table.texts("exempt_paths", EXEMPT_PATHS, lines).unwrap_or_default();
    let read = texts.into_iter().filter_map(|text| lines.read(text, PathPattern::parse));
    let exempt: Vec<_> = read.collect();
    if let Some(paths) = paths {
        report_mistakes_in_exemptions(&exempt, paths, lines);
    }
    exempt.into_iter().map(|pattern| pattern.value).collect()
}

/// Reports exemptions that leave nothing of a policy for `paths`, or that exempt nothing. No paths stand for all paths.
fn report_mistakes_in_exemptions(exempt: &[At<PathPattern>], paths: &[PathPattern], lines: &mut Lines<'_>) {
    let covers_all = |exempt: &[At<PathPattern>]| match paths {
        [] => exempt.iter().any(|exempt| exempt.value.contains_all()),
        paths => paths.iter().all(|path| exempt.iter().any(|exempt| exempt.value.covers(path))),
    };
    let mut mistakes = 0;
    for one in exempt {
        let is_apart = |path: &PathPattern| !path.covers(&one.value) && !one.value.covers(path);
        let mistake = if covers_all(slice::from_ref(one)) {
            EXEMPTS_ALL
        } else if !paths.is_empty() && paths.iter().all(is_apart) {
            "`match` has no such path, so there is nothing to exempt; remove it, or change `path`"
        } else {
            continue;
        };
        mistakes += 1;
        lines.report(one.place, mistake);
    }
    if let (0, [first, ..]) = (mistakes, exempt)
        && covers_all(exempt)
    {
        lines.report(first.place, EXEMPTS_ALL);
    }
}

/// Takes `cost = 5` or `cost = { tokens = 500 }`: what a request costs, by the names of units.
fn costs(table: &mut Table<'_>, rules: Option<&RuleList>, lines: &mut Lines<'_>) -> Vec<(String, u64)> {
    let is_by_unit = table.has_table("cost");
    let costs = if is_by_unit {
        let Some(by_unit) = table.table("cost", COSTS, lines) else { return Vec::new() };
        if by_unit.len() == 0 {
            lines.report(by_unit.place, format!("`cost` must not be empty, like `{COSTS}`"));
        }
        by_unit.numbers(lines)
    } else {
        let calls = table.number("cost", COST, lines);
        calls.map(|At { value, place }| (At { value: CALLS, place }, value)).into_iter().collect()
    };
    for (unit, cost) in &costs {
        let example = match unit.value {
            CALLS if is_by_unit => COST_IN_CALLS.to_owned(),
            CALLS => COST.to_owned(),
            unit => format!("cost = {{ {unit} = 500 }}"),
        };
        lines.ok_or_report(unit.place, check_cost(unit.value, *cost, &example, rules));
    }
    costs.into_iter().map(|(unit, cost)| (unit.value.to_owned(), cost)).collect()
}

fn check_cost(unit: &str, cost: u64, example: &str, rules: Option<&RuleList>) -> Result<(), String> {
    check_unit(unit)?;
    if cost == 0 {
        return Err(format!("`cost` must be at least 1, like `{example}`"));
    }
    let (counting, others): (Vec<_>, Vec<_>) = known_rules(rules).partition(|rule| rule.role() == Role::Limit);
    if counting.is_empty() && others.is_empty() {
        return Ok(());
    }
    let of_unit = counting.iter().filter(|rule| rule.counted() == unit);
    let Some(rule) = of_unit.min_by_key(|rule| rule.greatest_cost()) else {
        return Err(not_counted(unit, &counting.iter().map(|rule| rule.counted()).collect(), !others.is_empty()));
    };
    let greatest = rule.greatest_cost();
    if cost <= greatest {
        return Ok(());
    }
    Err(format!(
        "no request of this `cost` is ever admitted: `{rule}` admits at most {greatest} at once; lower the `cost`"
    ))
}

/// Returns why a cost in that unit costs nothing beside rules that count costs in the `known` units. `others` says whether
/// further rules count each call once, whatever it costs.
fn not_counted(unit: &str, known: &BTreeSet<&str>, others: bool) -> String {
    if others && (unit == CALLS || known.is_empty()) {
        let rule = if unit == CALLS { "10 per 60s".to_owned() } else { format!("900 {unit} per 60s") };
        return format!(
            "`cost` needs a rule that counts it, like `{rule}`: `prevent_duplicate` and `concurrent` count each call once; \
             remove it, or add a rule"
        );
    }
    let known: Vec<_> = known.iter().copied().collect();
    let remedy = remedy(nearest(unit, known.iter().copied()), "the rules count", &known);
    format!("no rule counts `{unit}`, so this costs nothing; {remedy}")
}

fn refund_if(table: &mut Table<'_>, lines: &mut Lines<'_>) -> Option<RefundedStatus> {
    let At { value, place } = table.text("refund_if", REFUND_IF, lines)?;
    let read = match value {
        "success" => Ok(RefundedStatus::Success),
        "failure" => Ok(RefundedStatus::Failure),
        _ => Err("`refund_if` must be `\"success\"`, so that only failures count, or `\"failure\"`"),
    };
    lines.ok_or_report(place, read)
}

fn reject(mut table: Table<'_>, lines: &mut Lines<'_>) -> Option<OwnResponse> {
    table.require("status", "status = 403");
    let status = table.number("status", "status = 403", lines);
    let body = table.text("body", r#"body = "not now""#, lines);
    let content_type = table.text("content_type", r#"content_type = "text/html""#, lines);
    table.finish(lines);
    let status = status.and_then(|status| lines.read(status, status_of_error));
    let content_type = content_type.map(|text| {
        lines.read(text, |text| {
            let value = HeaderValue::from_str(text).ok().filter(|_| MediaType::parse(text).is_some());
            value.ok_or("`content_type` must be a media type, like `content_type = \"text/html\"`")
        })
    });
    let content_type = match content_type {
        Some(read) => read?.value,
        None => HeaderValue::from_static("text/plain; charset=utf-8"),
    };
    let body = body.map(|body| body.value.to_owned()).unwrap_or_default();
    Some(OwnResponse { status: status?.value, content_type, body })
}

fn status_of_error(status: u64) -> Result<StatusCode, &'static str> {
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let is_of_error = |status: &StatusCode| status.is_client_error() || status.is_server_error();
    status.filter(is_of_error).ok_or("`status` must be from 400 to 599, like `status = 403`")
}
