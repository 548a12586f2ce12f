//! The subjects that a command looks through: those of one policy, or of all.

use tallygate::admin::__shared as shared;
use tallygate::admin::__shared::OpenPolicy;
use tallygate::admin::{RegisteredPolicy, Tallies};
use tallygate::{Override, Rule, RuleId};

use crate::failure::Failure;
use crate::fleet::{Fleet, has_id, rule_id};

pub(in crate::commands) struct SubjectScope<'a> {
    policies: Vec<OpenPolicy<'a>>,
    /// The index of a policy in `policies`, and a label of its subjects.
    places: Vec<(usize, Option<String>)>,
    is_of_all: bool,
    /// The only rule to look at, if there is one.
    pub(in crate::commands) rule: Option<RuleId>,
    /// Policies that this version cannot read.
    pub(in crate::commands) left_out: Vec<&'a str>,
}

/// The subjects of one policy and label.
#[derive(Clone, Copy)]
pub(in crate::commands) struct SubjectGroup<'s> {
    pub(in crate::commands) listed: &'s OpenPolicy<'s>,
    pub(in crate::commands) label: Option<&'s str>,
}

impl<'a> SubjectScope<'a> {
    pub(in crate::commands) fn all(fleet: &'a Fleet<'_>) -> Result<Self, Failure> {
        let (policies, left_out) = fleet.all()?;
        let places = policies
            .iter()
            .enumerate()
            .flat_map(|(policy, listed)| labels(listed.described).map(move |label| (policy, label.map(str::to_owned))));
        Ok(Self { places: places.collect(), policies, is_of_all: true, rule: None, left_out })
    }

    /// The subjects of a label. Without one, the main subjects, or those of the first label if no rule counts them.
    pub(in crate::commands) fn of_policy(listed: OpenPolicy<'a>, label: Option<&str>) -> Result<Self, Failure> {
        let label = match label {
            Some(on) if labels(listed.described).any(|label| label == Some(on)) => Some(on.to_owned()),
            Some(on) => return Err(Fleet::unknown_label(listed.described, on)),
            None => labels(listed.described).next().flatten().map(str::to_owned),
        };
        Ok(Self::of_one(listed, label, None))
    }

    /// The subjects that a rule of the policy or of an override in force counts. `rule` is its name or position.
    pub(in crate::commands) async fn of_rule(
        fleet: &'a Fleet<'_>,
        listed: OpenPolicy<'a>,
        rule: &str,
    ) -> Result<Self, Failure> {
        let id = rule_id(rule);
        let mut own = listed.described.rules().iter().enumerate();
        let label = if let Some((position, _)) = own.find(|(position, rule)| has_id(rule, *position, &id)) {
            listed.described.label_of(position).map(str::to_owned)
        } else {
            let overrides = fleet.limiter.overrides().await?;
            let mut own = overrides.iter().filter(|one| one.policy() == listed.described.name());
            let found = own.find(|one| has_rule(one, &id)).ok_or_else(|| unknown_rule(listed.described, rule))?;
            found.label().map(str::to_owned)
        };
        Ok(Self::of_one(listed, label, Some(id)))
    }

    fn of_one(listed: OpenPolicy<'a>, label: Option<String>, rule: Option<RuleId>) -> Self {
        Self { policies: vec![listed], places: vec![(0, label)], is_of_all: false, rule, left_out: Vec::new() }
    }

    pub(in crate::commands) fn tallies(&self, fleet: &'a Fleet<'_>) -> Result<Tallies<'a>, Failure> {
        let mut places = self.places();
        let first = places.next().ok_or_else(|| Failure::usage(fleet.nothing_listed()))?;
        let tallies = fleet.limiter.tallies(&first.listed.policy, first.label)?;
        Ok(places.try_fold(tallies, |tallies, place| tallies.and(&place.listed.policy, place.label))?)
    }

    /// Returns the groups of subjects, in the order of [`tallies`](Self::tallies).
    pub(in crate::commands) fn places(&self) -> impl Iterator<Item = SubjectGroup<'_>> {
        self.places.iter().filter_map(|(policy, label)| {
            let listed = self.policies.get(*policy)?;
            Some(SubjectGroup { listed, label: label.as_deref() })
        })
    }

    pub(in crate::commands) fn policies(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(|listed| listed.described.name())
    }

    /// Returns the only group, or `None` if all policies are looked through.
    pub(in crate::commands) fn only(&self) -> Option<SubjectGroup<'_>> {
        self.places().next().filter(|_| !self.is_of_all)
    }

    /// Whether the rule is looked at.
    pub(in crate::commands) fn has(&self, position: usize, rule: &Rule) -> bool {
        self.rule.as_ref().is_none_or(|id| has_id(rule, position, id))
    }
}

/// Returns the labels of a policy's subjects. `None` is the main subject, and comes first.
fn labels(described: &RegisteredPolicy) -> impl Iterator<Item = Option<&str>> {
    let main = described.has_main_subject().then_some(None);
    main.into_iter().chain(described.subjects().map(|subject| Some(subject.label())))
}

fn has_rule(one: &Override, id: &RuleId) -> bool {
    one.rules().enumerate().any(|(position, (_, rule))| has_id(rule, position, id))
}

fn unknown_rule(described: &RegisteredPolicy, rule: &str) -> Failure {
    let names: Vec<_> = described.rules().iter().filter_map(Rule::name).collect();
    let positions = match described.rules().len() {
        1 => "0".to_owned(),
        rules => format!("0 to {}", rules.saturating_sub(1)),
    };
    let name = described.name();
    let remedy = shared::remedy("name", rule, names);
    Failure::usage(format!(
        "the policy `{name}` has no rule `{rule}`; its rules have the positions {positions}{remedy}"
    ))
}
