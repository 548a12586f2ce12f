//! The counts that operators ask about, where each call gives the count of a rule, as by a customer's plan.

use std::collections::{BTreeMap, BTreeSet};

use tallygate_rules::{CALLS, Rule};

use super::remedy;
use crate::bounds::shown_names;
#[cfg(feature = "config")]
use crate::config::Policies;
use crate::error::Error;
use crate::policy::PlanCounts;
#[cfg(feature = "config")]
use crate::policy::Policy;

/// The counts that operators ask about, in place of those that each call gives.
#[derive(Clone, Debug, Default)]
pub struct AskedCounts {
    /// Plans, each with the rule that gets its count: by name, position or unit. With `None`, the text is a plan for the only
    /// rule without a count, or `rule=plan`.
    pub plans: Vec<(Option<String>, String)>,
    /// Counts, each of a rule, as for plans.
    pub counts: Vec<(Option<String>, u64)>,
    /// What operators write before the rule of a count and its equals sign, for errors.
    pub before_rule: &'static str,
}

impl AskedCounts {
    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty() && self.counts.is_empty()
    }

    /// Returns the counts of these rules by their positions. `plans` are the plans of their policy.
    ///
    /// # Errors
    ///
    /// There is no such plan or rule, it has a count of its own, the plan has no count in its unit, or it is not said which rule
    /// is meant.
    pub fn by_position(
        &self,
        policy: &str,
        rules: &[Rule],
        plans: &BTreeMap<&str, PlanCounts>,
    ) -> Result<BTreeMap<usize, u64>, Error> {
        let open = OpenRules { policy, rules, before_rule: self.before_rule };
        let counts = self.counts.iter().map(|(rule, count)| (rule.as_deref(), Wanted::Count(*count)));
        let asked = self.plans.iter().map(|(rule, plan)| match rule {
            Some(rule) => (Some(rule.as_str()), Wanted::Plan(plan)),
            None => rule_and_plan(plan, plans),
        });
        // The rules that are named leave the others to what names none.
        let (named, others): (Vec<_>, Vec<_>) = counts.chain(asked).partition(|(rule, _)| rule.is_some());
        let mut asked = BTreeMap::new();
        for (rule, wanted) in named.into_iter().chain(others) {
            for (position, count) in open.counts(rule, wanted, plans, &asked)? {
                if asked.insert(position, count).is_some() {
                    return Err(Error::new(format!("two counts of rule {position} are given; give one")));
                }
            }
        }
        Ok(asked)
    }

    /// Returns the policy of that name in a file, with these counts. `None` if the file has no rules of it.
    ///
    /// # Errors
    ///
    /// As for [`by_position`](Self::by_position).
    #[cfg(feature = "config")]
    pub fn policy(&self, policies: &Policies, name: &str) -> Result<Option<Policy>, Error> {
        let (Some(policy), Some(open)) = (policies.policy(name), policies.open_policy(name)) else { return Ok(None) };
        let asked = self.by_position(name, open.rules(), &policies.plans(name))?;
        let count = |(position, rule): (usize, &Rule)| asked.get(&position).copied().unwrap_or(rule.count());
        let counts: Vec<_> = policy.rules().iter().enumerate().map(count).collect();
        Ok(Some(if asked.is_empty() { policy } else { policy.with_counts(counts) }))
    }
}

/// A count that somebody asks about: a number, or that of a plan.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Count(u64),
    /// The count of the plan of that name.
    Plan(&'a str),
}

/// The rules of a policy, of which some have no count of their own.
struct OpenRules<'a> {
    policy: &'a str,
    rules: &'a [Rule],
    before_rule: &'static str,
}

impl OpenRules<'_> {
    fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.rules.iter().enumerate().filter(|(_, rule)| rule.is_varying()).map(|(position, _)| position)
    }

    /// Returns the counts that are wanted, by the positions of their rules: of the named rule, or else of those whose count is
    /// not asked yet.
    fn counts(
        &self,
        rule: Option<&str>,
        wanted: Wanted<'_>,
        plans: &BTreeMap<&str, PlanCounts>,
        asked: &BTreeMap<usize, u64>,
    ) -> Result<Vec<(usize, u64)>, Error> {
        let position = || rule.map_or_else(|| self.only(asked), |rule| self.find(rule));
        let plan = match wanted {
            Wanted::Count(count) => return Ok(vec![(position()?, count)]),
            Wanted::Plan(plan) => plan,
        };
        match plans.get(plan) {
            Some(PlanCounts::ByUnit(counts)) if rule.is_none() => self.of_units(plan, counts, asked),
            Some(PlanCounts::ByUnit(counts)) => {
                let position = position()?;
                let unit = self.rules.get(position).map_or(CALLS, Rule::counted);
                let count = counts.get(unit).ok_or_else(|| self.without_unit(plan, unit, counts))?;
                Ok(vec![(position, *count)])
            }
            Some(PlanCounts::One(count)) => Ok(vec![(position()?, *count)]),
            None => {
                position()?;
                Err(unknown_plan(self.policy, plan, plans))
            }
        }
    }

    /// Returns the counts of a plan by the positions of the rules in its units whose count is not asked yet.
    fn of_units(
        &self,
        plan: &str,
        counts: &BTreeMap<String, u64>,
        asked: &BTreeMap<usize, u64>,
    ) -> Result<Vec<(usize, u64)>, Error> {
        let left: Vec<_> = self.positions().filter(|position| !asked.contains_key(position)).collect();
        let mut found = Vec::new();
        for (unit, count) in counts {
            let counts_unit = |at: &&usize| self.rules.get(**at).is_some_and(|rule| rule.counted() == unit);
            match left.iter().filter(counts_unit).copied().collect::<Vec<_>>()[..] {
                [] => {}
                [position] => found.push((position, *count)),
                ref several => return Err(self.several_of(unit, several)),
            }
        }
        match left.first().and_then(|&first| self.rules.get(first)) {
            Some(rule) if found.is_empty() => Err(self.without_unit(plan, rule.counted(), counts)),
            Some(_) => Ok(found),
            // Says why no rule is left.
            None => self.only(asked).map(|_| found),
        }
    }

    fn without_unit(&self, plan: &str, unit: &str, counts: &BTreeMap<String, u64>) -> Error {
        let units: Vec<_> = counts.keys().map(String::as_str).collect();
        Error::new(format!(
            "plan `{plan}` of policy `{}` has no count in `{unit}`, but in {}; give the count in place of the plan",
            self.policy,
            shown_names(&units)
        ))
    }

    fn several_of(&self, unit: &str, positions: &[usize]) -> Error {
        Error::new(format!(
            "several rules of policy `{}` count `{unit}`: {}; name one by its name or position",
            self.policy,
            listed(positions)
        ))
    }

    /// Returns the position of the only rule whose count is not asked yet.
    fn only(&self, asked: &BTreeMap<usize, u64>) -> Result<usize, Error> {
        let left: Vec<_> = self.positions().filter(|position| !asked.contains_key(position)).collect();
        match left[..] {
            [only] => Ok(only),
            [] if self.positions().next().is_none() => Err(self.fixed()),
            [] => Err(Error::new(format!(
                "more counts are given than policy `{}` has rules whose count each call gives; give fewer",
                self.policy
            ))),
            _ => Err(Error::new(format!(
                "policy `{}` has several rules whose count each call gives: {}; {}",
                self.policy,
                listed(&left),
                self.how_to_name(),
            ))),
        }
    }

    fn how_to_name(&self) -> String {
        let first = self.positions().next().unwrap_or(0);
        format!("name the rule of each count, like `{}{first}=100`, by its position, name or unit", self.before_rule)
    }

    /// Returns the position of the rule with that name or position, or else of the only one of that unit.
    fn find(&self, rule: &str) -> Result<usize, Error> {
        if rule.is_empty() {
            return Err(Error::new(format!("a count without a rule before its equals sign; {}", self.how_to_name())));
        }
        let rules = || self.rules.iter().enumerate();
        let named = rules().find(|(position, own)| own.name() == Some(rule) || rule.parse() == Ok(*position));
        if let Some((position, found)) = named {
            return if found.is_varying() { Ok(position) } else { Err(self.fixed_at(position, found)) };
        }
        let of_unit = || rules().filter(|(_, own)| own.counted() == rule);
        let open: Vec<_> = of_unit().filter(|(_, own)| own.is_varying()).map(|(position, _)| position).collect();
        match (&open[..], of_unit().next()) {
            ([only], _) => Ok(*only),
            ([], Some((position, found))) => Err(self.fixed_at(position, found)),
            ([], None) => {
                let units = self.rules.iter().filter(|own| own.is_varying()).map(Rule::counted);
                let known: BTreeSet<_> = self.rules.iter().filter_map(Rule::name).chain(units).collect();
                let meant = remedy("name or unit", rule, known);
                Err(Error::new(format!("policy `{}` has no rule `{rule}`{meant}", self.policy)))
            }
            (several, _) => Err(self.several_of(rule, several)),
        }
    }

    fn fixed_at(&self, position: usize, rule: &Rule) -> Error {
        if self.positions().next().is_none() {
            return self.fixed();
        }
        Error::new(format!(
            "rule {position} of policy `{}` is `{rule}`, whatever a call gives; leave its count out",
            self.policy
        ))
    }

    fn fixed(&self) -> Error {
        Error::new(format!(
            "each rule of policy `{}` has its count, which no plan and no call changes; leave the plan and the count out",
            self.policy
        ))
    }
}

fn listed(positions: &[usize]) -> String {
    positions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Reads `pro`, or `tokens=pro`. Both names may have equals signs in them.
fn rule_and_plan<'a>(text: &'a str, plans: &BTreeMap<&str, PlanCounts>) -> (Option<&'a str>, Wanted<'a>) {
    let Some(first) = text.split_once('=').filter(|_| !plans.contains_key(text)) else {
        return (None, Wanted::Plan(text));
    };
    let splits = text.match_indices('=').filter_map(|(at, _)| Some((text.get(..at)?, text.get(at + 1..)?)));
    let (rule, plan) = { splits }.find(|(_, plan)| plans.contains_key(plan)).unwrap_or(first);
    (Some(rule), Wanted::Plan(plan))
}

fn unknown_plan(policy: &str, plan: &str, plans: &BTreeMap<&str, PlanCounts>) -> Error {
    let names: Vec<_> = plans.keys().copied().collect();
    Error::new(match (&names[..], tallygate_rules::did_you_mean(plan, names.iter().copied())) {
        ([], _) => format!(
            "policy `{policy}` lists no plans: a file gives it none, or too many to be listed; give the count in place of the \
                        plan"
        ),
        (_, meant) if meant.is_empty() => {
            format!("policy `{policy}` has no plan `{plan}`; its plans are {}", shown_names(&names))
        }
        (_, meant) => format!("policy `{policy}` has no plan `{plan}`{meant} Its plans are {}", shown_names(&names)),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn asked(plan: Option<&str>, counts: &[(Option<&str>, u64)]) -> AskedCounts {
        let counts = counts.iter().map(|(rule, count)| (rule.map(str::to_owned), *count)).collect();
        AskedCounts {
            plans: plan.map(|plan| (None, plan.to_owned())).into_iter().collect(),
            counts,
            before_rule: "--count ",
        }
    }

    fn found(asked: &AskedCounts, rules: &[Rule]) -> Result<Vec<(usize, u64)>, String> {
        let plans = BTreeMap::from([("free", PlanCounts::One(10)), ("pro", PlanCounts::One(500))]);
        let found = asked.by_position("api", rules, &plans).map_err(|error| error.to_string());
        found.map(|found| found.into_iter().collect())
    }

    #[test]
    fn a_plan_and_a_count_are_those_of_the_only_rule_without_a_count() {
        let rules = [Rule::sliding_window(5, HOUR), Rule::sliding_window(1, HOUR).varying()];
        assert_eq!(found(&asked(None, &[]), &rules), Ok(vec![]));
        assert_eq!(found(&asked(Some("pro"), &[]), &rules), Ok(vec![(1, 500)]));
        assert_eq!(found(&asked(None, &[(None, 0)]), &rules), Ok(vec![(1, 0)]));
        assert_eq!(found(&asked(None, &[(Some("1"), 7)]), &rules), Ok(vec![(1, 7)]));
    }

    #[test]
    fn where_several_rules_have_no_count_it_is_said_which_one_is_meant() {
        let calls = Rule::sliding_window(1, HOUR).named("calls").varying();
        let rules = [calls, Rule::fixed_window(9, HOUR), Rule::fixed_window(1, HOUR).varying()];
        assert_eq!(found(&asked(Some("pro"), &[(Some("calls"), 7)]), &rules), Ok(vec![(0, 7), (2, 500)]));
        assert_eq!(found(&asked(None, &[(None, 8), (Some("2"), 7)]), &rules), Ok(vec![(0, 8), (2, 7)]));
        let refused = |asked: &AskedCounts| found(asked, &rules).unwrap_err();
        let several = "policy `api` has several rules whose count each call gives: 0, 2; name the rule of each count, like `--count 0=100`, by \
                       its position, name or unit";
        assert_eq!(refused(&asked(Some("pro"), &[])), several);
        assert_eq!(refused(&asked(None, &[(None, 1)])), several);
        assert_eq!(
            refused(&asked(None, &[(Some("1"), 7)])),
            "rule 1 of policy `api` is `9 per fixed 1h`, whatever a call gives; leave its count out"
        );
        assert!(refused(&asked(None, &[(Some("cals"), 7)])).ends_with("no rule `cals`; did you mean `calls`?"));
        assert!(refused(&asked(None, &[(Some("0"), 7), (Some("calls"), 8)])).starts_with("two counts of rule 0"));
        assert!(
            refused(&asked(Some("pro"), &[(Some("0"), 7), (Some("2"), 8)])).starts_with("more counts are given than")
        );
    }

    #[test]
    fn a_unit_names_the_only_rule_that_counts_it_without_a_count() {
        let [calls, tokens] = [1, 2].map(|count| Rule::sliding_window(count, HOUR).varying());
        let rules = [calls, tokens.counting("tokens"), Rule::fixed_window(9, HOUR).counting("tokens")];
        let plans = |plans: &[(&str, &str)]| AskedCounts {
            plans: plans.iter().map(|(rule, plan)| (Some((*rule).to_owned()), (*plan).to_owned())).collect(),
            ..AskedCounts::default()
        };
        assert_eq!(found(&plans(&[("tokens", "pro"), ("calls", "free")]), &rules), Ok(vec![(0, 10), (1, 500)]));
        let beside = AskedCounts { counts: vec![(None, 7)], ..plans(&[("tokens", "pro")]) };
        assert_eq!(found(&beside, &rules), Ok(vec![(0, 7), (1, 500)]));
        let refused = |asked: AskedCounts| found(&asked, &rules).unwrap_err();
        let unknown = "policy `api` has no rule `bytes`; there are `calls`, `tokens`";
        assert_eq!(refused(plans(&[("bytes", "pro")])), unknown);
        assert!(refused(plans(&[("token", "pro")])).ends_with("no rule `token`; did you mean `tokens`?"));
        assert!(refused(plans(&[("tokens", "prp")])).contains("has no plan `prp`; did you mean `pro`?"));
        assert!(refused(plans(&[("tokens", "pro"), ("1", "free")])).starts_with("two counts of rule 1"));
    }

    #[test]
    fn a_unit_that_several_rules_count_or_none_without_a_count_names_no_rule() {
        let tokens = Rule::sliding_window(9, HOUR).counting("tokens");
        let [open, bytes] = [tokens.clone().varying(), Rule::sliding_window(9, HOUR).counting("bytes")];
        let rules = [bytes, open.clone(), tokens, Rule::fixed_window(1, HOUR).counting("tokens").varying()];
        let refused = |rule| found(&asked(None, &[(Some(rule), 7)]), &rules).unwrap_err();
        assert_eq!(
            refused("tokens"),
            "several rules of policy `api` count `tokens`: 1, 3; name one by its name or position"
        );
        let fixed = "rule 0 of policy `api` is `9 bytes per 1h`, whatever a call gives; leave its count out";
        assert_eq!(refused("bytes"), fixed);
        let empty = "a count without a rule before its equals sign; name the rule of each count, like `--count 1=100`, by \
                     its position, name or unit";
        assert_eq!(refused(""), empty);
    }

    #[test]
    fn a_plan_with_counts_by_unit_gives_each_rule_without_a_count_that_of_its_unit() {
        let [calls, tokens] = [1, 2].map(|count| Rule::sliding_window(count, HOUR).varying());
        let (tokens, daily) =
            (tokens.counting("tokens"), Rule::fixed_window(9, HOUR).counting("tokens").named("daily"));
        let counts = |counts: &[(&str, u64)]| {
            PlanCounts::ByUnit(counts.iter().map(|(unit, count)| ((*unit).to_owned(), *count)).collect())
        };
        let plans = BTreeMap::from([
            ("pro", counts(&[("calls", 20), ("tokens", 60)])),
            ("test", counts(&[("tokens", 5)])),
            ("odd", counts(&[("bytes", 5)])),
        ]);
        let found = |texts: &[&str], counts: &[u64], rules: &[Rule]| {
            let plans_of = texts.iter().map(|text| (None, (*text).to_owned())).collect();
            let counts = counts.iter().map(|count| (None, *count)).collect();
            let asked = AskedCounts { plans: plans_of, counts, before_rule: "--count " };
            let found = asked.by_position("chat", rules, &plans).map_err(|error| error.to_string());
            found.map(|found| found.into_iter().collect::<Vec<_>>())
        };
        let rules = [calls.clone(), tokens.clone(), daily.clone()];
        assert_eq!(found(&["pro"], &[], &rules), Ok(vec![(0, 20), (1, 60)]));
        assert_eq!(found(&["tokens=test", "pro"], &[], &rules), Ok(vec![(0, 20), (1, 5)]));
        assert_eq!(found(&["test"], &[], &rules), Ok(vec![(1, 5)]), "the rule on calls stays open");
        assert_eq!(found(&["tokens=test"], &[7], &rules), Ok(vec![(0, 7), (1, 5)]));
        let refused = |texts: &[&str], rules: &[Rule]| found(texts, &[], rules).unwrap_err();
        assert_eq!(
            refused(&["calls=test"], &rules),
            "plan `test` of policy `chat` has no count in `calls`, but in `tokens`; give the count in place of the plan"
        );
        assert!(refused(&["odd"], &rules).contains("has no count in `calls`, but in `bytes`"));
        assert!(refused(&["pro", "test"], &rules).starts_with("more counts are given than policy `chat` has rules"));
        let several = [calls, tokens, daily.clone().varying()];
        let remedy = "several rules of policy `chat` count `tokens`: 1, 2; name one by its name or position";
        assert_eq!(refused(&["pro"], &several), remedy);
        assert_eq!(found(&["daily=test", "pro"], &[], &several), Ok(vec![(0, 20), (1, 60), (2, 5)]));
        assert!(refused(&["pro"], &[daily]).starts_with("each rule of policy `chat` has its count"));
    }

    #[test]
    fn names_of_rules_and_plans_may_have_equals_signs() {
        let named = |name| Rule::sliding_window(1, HOUR).named(name).varying();
        let rules = [named("a"), named("x=y")];
        let plans =
            BTreeMap::from([("b", 1), ("a=b", 2), ("c=d", 3)].map(|(name, count)| (name, PlanCounts::One(count))));
        let by_position = |texts: &[&str]| {
            let plans_of = texts.iter().map(|text| (None, (*text).to_owned())).collect();
            let asked = AskedCounts { plans: plans_of, ..AskedCounts::default() };
            asked.by_position("api", &rules, &plans).map_err(|error| error.to_string())
        };
        assert_eq!(by_position(&["a=b", "x=y=b"]), Ok(BTreeMap::from([(0, 2), (1, 1)])));
        assert_eq!(by_position(&["a=c=d", "x=y=a=b"]), Ok(BTreeMap::from([(0, 3), (1, 2)])));
        assert!(by_position(&["a=e"]).unwrap_err().contains("has no plan `e`"));
        assert!(by_position(&["=b"]).unwrap_err().starts_with("a count without a rule"));
    }

    #[test]
    fn a_plan_that_there_is_not_is_refused_with_those_that_there_are() {
        let rules = [Rule::sliding_window(1, HOUR).varying()];
        let refused = |plan| found(&asked(Some(plan), &[]), &rules).unwrap_err();
        assert_eq!(refused("prp"), "policy `api` has no plan `prp`; did you mean `pro`? Its plans are `free`, `pro`");
        assert_eq!(refused("enterprise"), "policy `api` has no plan `enterprise`; its plans are `free`, `pro`");
        let none = asked(Some("pro"), &[]).by_position("api", &rules, &BTreeMap::new()).unwrap_err();
        let expected = "policy `api` lists no plans: a file gives it none, or too many to be listed; give the count in place of \
                        the plan";
        assert_eq!(none.to_string(), expected);
        let fixed = found(&asked(Some("pro"), &[]), &[Rule::sliding_window(1, HOUR)]).unwrap_err();
        assert!(fixed.starts_with("each rule of policy `api` has its count, which no plan"), "{fixed}");
    }
}
