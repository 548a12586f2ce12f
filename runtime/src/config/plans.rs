//! The plans of a file: counts by name, of one policy or of all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tallygate_rules::{Rule, check_unit, did_you_mean, is_blank, nearest};
use toml::de::DeValue;

use super::lines::{At, Lines};
use super::table::{Entry, Table, whole_number};
use crate::bounds::{MOST_SUGGESTIONS, MOST_TEXTS, PLAN_NAME_BYTES};
use crate::error::{Mistake, Place};
use crate::observe::{ReportedOnce, log};
use crate::policy::{PlanCounts, Policy};

const PLANS: &str = "plans = { free = 100, paid = 10000 }";
const BY_UNIT: &str = "{ calls = 20, tokens = 60000 }";
const LIST: &str = r#"plans = ["free", "paid"]"#;

/// The plans of a policy: counts by name.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// Its own counts, each with the place of its plan's name.
    own: BTreeMap<String, At<PlanCounts>>,
    /// The units that its own counts name, once for each plan, each with its place.
    pub(super) units: Vec<At<String>>,
    listed: Arc<ListedPlans>,
    /// The place of its own plans; `None` if it has none.
    pub(super) place: Option<Place>,
}

/// The plans that a file names before its policies.
#[derive(Debug, Default)]
pub(crate) struct ListedPlans {
    /// The names of all plans; `None` if the file has no such list.
    names: Option<BTreeSet<String>>,
    /// The counts for policies without counts of their own.
    counts: BTreeMap<String, At<PlanCounts>>,
    /// The units that these counts name, once for each plan, each with its place.
    units: Vec<At<String>>,
    /// Set once it was reported that calls ask for a plan that is not among these.
    reported: ReportedOnce,
}

impl Plans {
    pub(super) fn take(policy: &mut Table<'_>, listed: &Arc<ListedPlans>, lines: &mut Lines<'_>) -> Self {
        let listed = Arc::clone(listed);
        let Some(table) = policy.table("plans", PLANS, lines) else {
            return Self { listed, ..Self::default() };
        };
        let place = table.place;
        let (own, units) = counts(table, lines);
        listed.check(&own, lines);
        Self { own, units, listed, place: Some(place) }
    }

    /// Returns the counts of a plan for that policy, for a call.
    pub(crate) fn of(&self, policy: &str, plan: &str) -> Option<&PlanCounts> {
        self.own.get(plan).map(|counts| &counts.value).or_else(|| self.listed.of(policy, plan))
    }

    /// Returns the names of all plans that the file lists before its policies.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.listed.names.iter().flatten().map(String::as_str)
    }

    /// Returns all counts by the names of their plans.
    pub(super) fn counts(&self) -> BTreeMap<&str, &PlanCounts> {
        let own = self.own.iter().map(|(name, counts)| (name.as_str(), &counts.value));
        self.listed.counts().chain(own).collect()
    }

    /// Returns its own counts by the names of their plans.
    pub(super) fn own(&self) -> &BTreeMap<String, At<PlanCounts>> {
        &self.own
    }

    /// Returns all counts by the names of their plans, each at its place. Those of all policies have the place of `plan`.
    pub(super) fn counts_at(&self, plan: Place) -> BTreeMap<&str, At<&PlanCounts>> {
        let own = |name: &str| self.own.get(name).map_or(plan, |count| count.place);
        self.counts().into_iter().map(|(name, value)| (name, At { value, place: own(name) })).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.place.is_none() && self.listed.counts.is_empty()
    }
}

impl ListedPlans {
    /// Takes the plans out of the file: `plans = ["free", "paid"]`, or `[plans]` with counts.
    pub(super) fn take(root: &mut Table<'_>, lines: &mut Lines<'_>) -> Self {
        let Some(Entry { name, value: At { value, place } }) = root.take("plans") else { return Self::default() };
        match value {
            DeValue::Table(table) => {
                let (counts, units) = counts(Table::new(table, name.place, lines), lines);
                let names = counts.keys().cloned().collect();
                Self { names: Some(names), counts, units, ..Self::default() }
            }
            DeValue::Array(list) => {
                let names: Vec<_> = list.iter().map(|name| super::table::at(name, lines)).collect();
                check_number(names.len(), place, LIST, lines);
                let name = |name: At<&DeValue<'_>>| {
                    let message = || format!("`plans` lists names, like `{LIST}`");
                    let name = lines.read(name, |value| value.as_str().ok_or_else(message))?;
                    check_name(&name, lines);
                    Some(name.value.to_owned())
                };
                Self { names: Some(names.into_iter().filter_map(name).collect()), ..Self::default() }
            }
            _ => {
                lines.report(
                    place,
                    format!("`plans` must be a list of names, like `{LIST}`, or counts, like `{PLANS}`"),
                );
                Self::default()
            }
        }
    }

    /// Returns the counts of a plan for that policy, which gives none of its own, for a call.
    pub(crate) fn of(&self, policy: &str, plan: &str) -> Option<&PlanCounts> {
        let counts = self.counts.get(plan);
        if counts.is_none()
            && let Some(names) = self.names.as_ref().filter(|names| !names.contains(plan))
            && self.reported.is_first()
        {
            log::plan_not_listed(policy, nearest(plan, names.iter().map(String::as_str)));
        }
        counts.map(|counts| &counts.value)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&str, &PlanCounts)> {
        self.counts.iter().map(|(name, counts)| (name.as_str(), &counts.value))
    }

    /// Returns the mistakes of counts that are too great for a policy, each once. `asking` are policies whose calls may ask for
    /// counts, with their own plans, which these counts give way to.
    pub(super) fn too_great_for(&self, asking: &[(Policy, Option<&Plans>)]) -> Vec<Mistake> {
        let mistakes_of = |(plan, counts): (&String, &At<PlanCounts>)| {
            let asking = asking.iter().filter(|(_, own)| own.is_none_or(|own| !own.own.contains_key(plan)));
            let mistakes = asking.map(|(policy, _)| {
                let rules: Vec<_> = policy.rules().iter().filter(|rule| rule.is_varying()).collect();
                let named = |mistake| {
                    let name = policy.name();
                    Mistake::new(
                        counts.place,
                        format!("policy `{name}`: {mistake}, or give the policy `plans` of its own"),
                    )
                };
                too_great(plan, &counts.value, &rules).map(named).collect::<Vec<_>>()
            });
            { mistakes }.find(|mistakes| !mistakes.is_empty()).unwrap_or_default()
        };
        self.counts.iter().flat_map(mistakes_of).collect()
    }

    /// Returns the mistakes of units that nothing counts, while something counts one of a similar name.
    pub(super) fn misspelt_units(&self, counted: &BTreeSet<&str>) -> Vec<Mistake> {
        let unknown = self.units.iter().filter(|unit| !counted.contains(&*unit.value)).take(MOST_SUGGESTIONS);
        let misspelt = unknown.filter_map(|At { value: unit, place }| {
            let meant = nearest(unit, counted.iter().copied())?;
            Some(Mistake::new(*place, format!("no policy counts `{unit}`; did you mean `{meant}`?")))
        });
        misspelt.collect()
    }

    /// Returns a warning for each unit that no policy of the file counts, if they count one of a similar name, or have the counts
    /// of plans.
    pub(super) fn uncounted_units(&self, counted: &BTreeSet<&str>, has_planned: bool) -> Vec<Mistake> {
        let uncounted = self.units.iter().filter(|unit| !counted.contains(&*unit.value)).take(MOST_SUGGESTIONS);
        let warning = |At { value: unit, place }: &At<String>| {
            let meant = did_you_mean(unit, counted.iter().copied());
            let remedy = match &*meant {
                "" if !has_planned => return None,
                "" => "; add a rule that does, or remove it",
                meant => meant,
            };
            let message = format!(
                "no policy of this file counts `{unit}`, and only the program knows whether its own do{remedy}"
            );
            Some(Mistake::new(*place, message))
        };
        uncounted.filter_map(warning).collect()
    }

    /// Reports plans of a policy that are not among all plans.
    fn check(&self, own: &BTreeMap<String, At<PlanCounts>>, lines: &mut Lines<'_>) {
        let Some(names) = &self.names else { return };
        let unknown = own.iter().filter(|(name, _)| !names.contains(*name));
        for (number, (name, At { place, .. })) in unknown.enumerate() {
            let known = names.iter().map(String::as_str).filter(|_| number < MOST_SUGGESTIONS);
            let meant = did_you_mean(name, known);
            let remedy =
                if meant.is_empty() { "; add it to `plans` before the policies, or remove it" } else { &meant };
            lines.report(*place, format!("no plan `{name}`{remedy}"));
        }
    }
}

/// Returns what is wrong with the counts of a plan that are too great for each of the rules that may ask for them.
pub(super) fn too_great<'p>(
    plan: &'p str,
    counts: &'p PlanCounts,
    asking: &'p [&Rule],
) -> impl Iterator<Item = String> + 'p {
    counts.counts().filter_map(move |(unit, count)| {
        let unit = unit.unwrap_or_else(|| PlanCounts::unit_of_one(asking.iter().copied()));
        let widest = asking.iter().filter(|rule| rule.counted() == unit).max_by_key(|rule| rule.greatest_count())?;
        check_count(plan, count, widest).err()
    })
}

/// Refuses a count of a plan that is too great for the algorithm of its rule, which would become the greatest possible one.
pub(super) fn check_count(plan: &str, count: u64, rule: &Rule) -> Result<(), String> {
    let greatest = rule.greatest_count();
    if count <= greatest {
        return Ok(());
    }
    Err(format!("plan `{plan}` has a count of {count}, and that of this algorithm is at most {greatest}; lower it"))
}

/// Reports plans that no other policy has, while others have one of a similar name. A list of all plans says which of
/// them is meant.
pub(super) fn check_alike(policies: &[&Plans], lines: &mut Lines<'_>) {
    let mut suggestions = MOST_SUGGESTIONS;
    let mut policies_with: HashMap<&str, usize> = HashMap::new();
    for name in policies.iter().flat_map(|plans| plans.own.keys()) {
        *policies_with.entry(name).or_default() += 1;
    }
    let mut earlier: BTreeSet<&str> = BTreeSet::new();
    for plans in policies.iter().filter(|plans| plans.listed.names.is_none()) {
        for (name, At { place, .. }) in &plans.own {
            if policies_with.get(name.as_str()) != Some(&1) || suggestions == 0 {
                continue;
            }
            suggestions -= 1;
            // Of two plans that one policy has each, the later may be the mistake.
            let is_sound =
                |other: &&str| earlier.contains(other) || policies_with.get(other).is_some_and(|&with| with > 1);
            let others = policies_with.keys().copied().filter(|other| !plans.own.contains_key(*other));
            if let Some(meant) = nearest(name, others.filter(is_sound)) {
                let message = format!(
                    "no other policy has a plan `{name}`; did you mean `{meant}`? If both are plans, list all of them before the \
                     policies, like `{}`",
                    list(policies_with.keys().copied())
                );
                lines.report(*place, message);
            }
        }
        earlier.extend(plans.own.keys().map(String::as_str));
    }
}

/// Returns a warning if only the program knows which plans there are.
pub(super) fn unlisted<'p>(policies: impl Iterator<Item = &'p Plans>) -> Option<Mistake> {
    let mut policies = policies.filter(|plans| plans.listed.names.is_none());
    let first = policies.find(|plans| plans.place.is_some())?;
    let names: BTreeSet<_> = std::iter::once(first).chain(policies).flat_map(|plans| plans.own.keys()).collect();
    let message = format!(
        "whether these are the plans of the program, only it knows; list all of them before the policies, like `{}`",
        list(names.into_iter().map(String::as_str))
    );
    Some(Mistake::new(first.place?, message))
}

/// Returns the list of these plans as a file has it, or an example if they are many.
fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const FEW: usize = 8;
    let names: BTreeSet<_> = names.collect();
    if names.len() > FEW { LIST.to_owned() } else { format!("plans = {:?}", Vec::from_iter(names)) }
}

/// Returns the counts of a table, each with the place of its plan's name, and the units that they name.
fn counts(table: Table<'_>, lines: &mut Lines<'_>) -> (BTreeMap<String, At<PlanCounts>>, Vec<At<String>>) {
    check_number(table.len(), table.place, PLANS, lines);
    let mut units = Vec::new();
    let counts = table.into_entries().into_iter().filter_map(|Entry { name, value }| {
        check_name(&name, lines);
        let counts = match value.value {
            DeValue::Table(by_unit) => {
                counts_by_unit(&name, Table::new(by_unit, value.place, lines), &mut units, lines)
            }
            number => {
                let message = || {
                    format!(
                        "`{0}` must be a number, like `{0} = 100`, or a number for each unit, like `{0} = {BY_UNIT}`",
                        name.value
                    )
                };
                PlanCounts::One(lines.ok_or_report(value.place, whole_number(number).ok_or_else(message))?)
            }
        };
        Some((name.value.to_owned(), At { value: counts, place: name.place }))
    });
    (counts.collect(), units)
}

fn counts_by_unit(plan: &At<&str>, table: Table<'_>, units: &mut Vec<At<String>>, lines: &mut Lines<'_>) -> PlanCounts {
    if table.len() == 0 {
        lines.report(table.place, format!("the counts of a plan must not be empty, like `{} = {BY_UNIT}`", plan.value));
    }
    let counts = table.numbers(lines).into_iter().filter_map(|(unit, count)| {
        lines.ok_or_report(unit.place, check_unit(unit.value))?;
        units.push(At { value: unit.value.to_owned(), place: unit.place });
        Some((unit.value.to_owned(), count))
    });
    PlanCounts::ByUnit(counts.collect())
}

fn check_number(plans: usize, place: Place, example: &str, lines: &mut Lines<'_>) {
    match plans {
        0 => lines.report(place, format!("`plans` must not be empty, like `{example}`")),
        1..=MOST_TEXTS => {}
        _ => lines.report(place, format!("there are {plans} plans, and {MOST_TEXTS} are the most; write fewer")),
    }
}

fn check_name(name: &At<&str>, lines: &mut Lines<'_>) {
    if is_blank(name.value) {
        lines.report(name.place, format!("the name of a plan must not be empty, like `{PLANS}`"));
    }
    if name.value.len() > PLAN_NAME_BYTES {
        lines.report(name.place, format!("the name of a plan has {PLAN_NAME_BYTES} bytes at most; shorten it"));
    }
}
