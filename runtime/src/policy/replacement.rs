//! Policies in which other rules replace those on one subject.

use tallygate_rules::{Rule, RuleId};

use super::shared::Shared;
use super::{Inner, Policy};

/// Rules that replace those of a policy on one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// They replace all of them.
    All(Vec<Rule>),
    /// Each replaces a single one.
    Single(Vec<(RuleId, Rule)>),
}

/// The label of the subject that a rule counts, the rule, and the position of the policy's own rule that it replaces or is.
type Replaced = (Option<String>, Rule, Option<usize>);

impl Policy {
    /// Returns the same policy with other rules on one of its subjects. A rule that replaces one that is not there
    /// changes nothing; `None` says that nothing is changed at all.
    pub(crate) fn with_replacement(&self, label: Option<&str>, replacement: &Replacement) -> Option<Self> {
        let rules = match replacement {
            Replacement::All(rules) => self.replace_all(label, rules),
            Replacement::Single(rules) => self.replace_single(label, rules)?,
        };
        let (rules, replaced): (Vec<_>, Vec<_>) =
            rules.into_iter().map(|(label, rule, replaced)| ((label, rule), replaced)).unzip();
        let Inner { name, ban, settings, .. } = &*self.inner;
        let inner = Inner::new(name.clone(), rules, *ban, *settings, replaced.into());
        Some(Self { inner: Shared::counted(Inner { origin: Some(self.origin().clone()), ..inner }) })
    }

    /// Returns where the rule on that subject is that has this name, or that replaces or is the policy's own rule at this
    /// position.
    pub(crate) fn position_of(&self, label: Option<&str>, id: &RuleId) -> Option<usize> {
        let is_meant = |position: usize, rule: &Rule| match id {
            RuleId::Name(name) => rule.name() == Some(name),
            RuleId::Position(own) => self.replaced(position) == Some(*own),
        };
        self.rules_on(label).find(|&(position, rule)| is_meant(position, rule)).map(|(position, _)| position)
    }

    /// Puts other rules in the places of those on one subject, one by one, so that the others stay where they are; what is
    /// left of them comes last. One that is like one of the policy's own has the name of that.
    fn replace_all(&self, label: Option<&str>, rules: &[Rule]) -> Vec<Replaced> {
        let mut new = rules.iter().map(|rule| {
            let like = self.rules_on(label).find(|(_, own)| own.has_same_window(rule));
            let name = like.and_then(|(_, own)| own.name());
            (label.map(str::to_owned), named(rule, name), like.and_then(|(at, _)| self.replaced(at)))
        });
        let replace = |(at, own): (usize, &Rule)| match self.label(at) {
            other if other.as_deref() != label => Some((other, own.clone(), self.replaced(at))),
            _ => new.next(),
        };
        let mut all: Vec<_> = self.rules().iter().enumerate().filter_map(replace).collect();
        all.extend(new);
        all
    }

    /// Puts rules in the places of single ones, whose names they get. Returns `None` if none of them is there.
    fn replace_single(&self, label: Option<&str>, rules: &[(RuleId, Rule)]) -> Option<Vec<Replaced>> {
        let found = rules.iter().filter_map(|(id, rule)| Some((self.position_of(label, id)?, rule)));
        let found: Vec<_> = found.collect();
        let replace = |(at, own): (usize, &Rule)| {
            let new = found.iter().find(|(replaced, _)| *replaced == at);
            let rule = new.map_or_else(|| own.clone(), |(_, rule)| named(rule, own.name()));
            (self.label(at), rule, self.replaced(at))
        };
        (!found.is_empty()).then(|| self.rules().iter().enumerate().map(replace).collect())
    }

    /// The rules on the subject of that label, with their positions.
    fn rules_on(&self, label: Option<&str>) -> impl Iterator<Item = (usize, &Rule)> {
        let groups = self.groups().iter().filter(move |group| group.label.as_deref() == label);
        groups.flat_map(|group| group.positions.iter().copied().zip(&group.rules))
    }

    /// The position of the policy's own rule that the rule at `position` replaces, if there is one. Without an override
    /// that is the rule itself.
    pub(crate) fn replaced(&self, position: usize) -> Option<usize> {
        if self.inner.replaced.is_empty() { Some(position) } else { self.inner.replaced.get(position).copied()? }
    }

    /// The rules, each with the label of the subject that it counts unless that is the main one.
    pub(crate) fn rules_with_labels(&self) -> Vec<(Option<String>, Rule)> {
        self.rules().iter().enumerate().map(|(position, rule)| (self.label(position), rule.clone())).collect()
    }

    /// The label of the subject that a rule counts, unless that is the main one.
    fn label(&self, position: usize) -> Option<String> {
        let group = self.groups().get(self.group_of(position)?)?;
        group.label.as_deref().map(str::to_owned)
    }
}

/// Gives the rule that name unless it has one of its own.
fn named(rule: &Rule, name: Option<&str>) -> Rule {
    match (rule.name(), name) {
        (None, Some(name)) => rule.clone().named(name.to_owned()),
        _ => rule.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Ban, RuleChange, override_rules};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rule(count: u64, minutes: u32) -> Rule {
        Rule::sliding_window(count, minutes * MINUTE)
    }

    fn all<const N: usize>(rules: [Rule; N]) -> Replacement {
        Replacement::All(rules.into())
    }

    fn single<const N: usize>(rules: [(RuleId, Rule); N]) -> Replacement {
        Replacement::Single(rules.into())
    }

    /// Rules on a network at positions 0 and 2, on the main subject at 1 and 3.
    fn policy() -> Policy {
        let builder = Policy::builder("sms").rule_on("ip", rule(9, 1)).rule(rule(1, 1).named("short"));
        let builder = builder.rule_on("ip", rule(99, 60).named("ip.hourly")).rule(rule(5, 60));
        builder.ban(Ban::new(3, MINUTE, 10 * MINUTE)).build().unwrap()
    }

    fn replaced(policy: &Policy) -> Vec<Option<usize>> {
        (0..policy.rules().len()).map(|position| policy.replaced(position)).collect()
    }

    #[test]
    fn other_rules_on_one_subject_leave_the_others_and_the_ban_alone() {
        let policy = policy();
        let main = policy.with_replacement(None, &all([rule(2, 2), rule(3, 4), rule(4, 8)])).unwrap();
        assert_eq!(main.rules()[..4], [rule(9, 1), rule(2, 2), rule(99, 60).named("ip.hourly"), rule(3, 4)]);
        assert_eq!(main.rules()[4..], [rule(4, 8)]);
        assert_eq!((main.ban(), main.groups().len()), (policy.ban(), 2));
        assert_eq!(main.groups()[1].segment, policy.groups()[1].segment);
        assert_ne!(main.groups()[0].segment, policy.groups()[0].segment);
        assert_eq!(main.escaped_name(), "sms");

        let ip = policy.with_replacement(Some("ip"), &all([rule(7, 2)])).unwrap();
        assert_eq!(ip.rules(), [rule(7, 2), rule(1, 1).named("short"), rule(5, 60)]);
        assert_eq!(ip.groups()[0].segment, policy.groups()[0].segment);
        assert_eq!(replaced(&ip), [None, Some(1), Some(3)]);
    }

    #[test]
    fn a_rule_that_replaces_one_like_it_has_its_name_and_its_position() {
        let own = [rule(9, 1).named("short"), Rule::token_bucket(50, 60 * MINUTE).named("steady")];
        let policy = Policy::builder("sms").rule(Rule::duplicate(MINUTE / 12)).rules(own).build().unwrap();
        let other = policy.with_replacement(None, &all([rule(9, 2), Rule::token_bucket(70, 60 * MINUTE), rule(3, 1)]));
        let other = other.unwrap();
        let names: Vec<_> = other.rules().iter().map(Rule::name).collect();
        assert_eq!(names, [None, Some("steady"), Some("short")]);
        assert_eq!(replaced(&other), [None, Some(2), Some(1)]);
        assert_eq!(replaced(&policy), [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn single_rules_keep_the_positions_and_the_names_of_those_that_they_replace() {
        let policy = policy();
        let other = policy.with_replacement(None, &single([("short".into(), rule(2, 2)), (3.into(), rule(6, 60))]));
        let other = other.unwrap();
        let rules = [rule(9, 1), rule(2, 2).named("short"), rule(99, 60).named("ip.hourly"), rule(6, 60)];
        assert_eq!((other.rules(), replaced(&other)), (&rules[..], vec![Some(0), Some(1), Some(2), Some(3)]));
        let other = policy.with_replacement(Some("ip"), &single([("ip.hourly".into(), rule(7, 60))])).unwrap();
        assert_eq!(other.rules()[2], rule(7, 60).named("ip.hourly"));
    }

    #[test]
    fn rules_on_another_subject_are_not_found_and_change_nothing() {
        let policy = policy();
        for missing in ["ip.hourly".into(), 0.into(), 4.into(), "hourly".into()] {
            assert!(policy.with_replacement(None, &single([(missing, rule(7, 60))])).is_none());
        }
        let other = policy.with_replacement(None, &single([(0.into(), rule(7, 1)), (1.into(), rule(8, 1))])).unwrap();
        assert_eq!((other.rules()[0].count(), other.rules()[1].count()), (9, 8));
    }

    #[test]
    fn replacements_on_several_subjects_add_up() {
        let policy = policy();
        let main = policy.with_replacement(None, &all([rule(2, 2), rule(3, 60), rule(4, 8)])).unwrap();
        let both = main.with_replacement(Some("ip"), &single([(2.into(), rule(98, 60))])).unwrap();
        assert_eq!(both.rules()[2], rule(98, 60).named("ip.hourly"));
        assert_eq!(replaced(&both), [Some(0), None, Some(2), Some(3), None]);
        let fewer = policy.with_replacement(Some("ip"), &all([rule(2, 2)])).unwrap();
        let both = fewer.with_replacement(None, &single([(3.into(), rule(6, 60))])).unwrap();
        assert_eq!(both.rules(), [rule(2, 2), rule(1, 1).named("short"), rule(6, 60)]);
    }
    #[test]
    fn what_is_applied_is_what_was_checked() {
        let policy = policy();
        let lists = [vec![rule(2, 2)], vec![rule(2, 2), rule(30, 60).named("x"), rule(5, 8)], vec![rule(0, 1)]];
        let of_subject = |label: Option<&'static str>| {
            lists.clone().map(|rules| {
                let change = RuleChange::Subject { label: label.map(str::to_owned), rules: rules.clone() };
                (label, Replacement::All(rules), change)
            })
        };
        let one =
            |label, id: RuleId, rule: Rule| (label, single([(id.clone(), rule.clone())]), RuleChange::One { id, rule });
        let single_rules = [
            one(None, "short".into(), rule(0, 2)),
            one(None, 3.into(), rule(7, 60).named("y")),
            one(Some("ip"), 0.into(), Rule::fixed_window(7, MINUTE)),
            one(Some("ip"), "ip.hourly".into(), rule(7, 60)),
        ];
        for (label, replacement, change) in
            of_subject(None).into_iter().chain(of_subject(Some("ip"))).chain(single_rules)
        {
            let applied = policy.with_replacement(label, &replacement).unwrap();
            let checked = override_rules(&policy.rules_with_labels(), &[change]).unwrap();
            let rules: Vec<_> = checked.iter().map(|checked| (checked.label.clone(), checked.rule.clone())).collect();
            let positions: Vec<_> = checked.iter().map(|checked| checked.position).collect();
            assert_eq!((applied.rules_with_labels(), replaced(&applied)), (rules, positions), "{replacement:?}");
        }
    }
}
