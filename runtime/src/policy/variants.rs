//! Variants of a policy: with other counts, other settings or other rules.

use std::borrow::Cow;
use std::num::NonZeroU64;

use tallygate_rules::{EffectiveRule, Replacement, Rule};

use super::PolicySettings;
use super::registry;
use super::rule_group::RuleGroup;
use super::templates::Templates;
use super::{Policy, PolicyInner};

impl Policy {
    /// Returns the policy with other counts: the first for its first rule, and so on. Rules beyond them keep theirs.
    ///
    /// Both policies have one name and share their tallies, so each call may have the counts that its caller has paid
    /// for. A count of 0 closes the limit: every call that costs anything is denied, and none of them can ever be
    /// admitted. An override that sets it denies calls with a [`cost`](crate::Check::cost) of 0, too. A count that is too
    /// great for its algorithm becomes the greatest one that is not.
    ///
    /// Tools of operators show the counts of the policy that was built. If each call has its own, build the policy of
    /// [`Rule::varying`] rules, whose count they show as `n`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let alice = Subject::of("alice");
    /// let free = Policy::builder("api").rule(Rule::sliding_window(1, Duration::from_secs(3600))).build()?;
    /// assert!(limiter.check(&free, &alice).await?.is_allowed());
    /// assert!(!limiter.check(&free, &alice).await?.is_allowed());
    ///
    /// let paid = free.with_counts([100]);
    /// assert!(limiter.check(&paid, &alice).report().await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_counts(&self, counts: impl IntoIterator<Item = u64>) -> Self {
        let mut rules: Box<[Rule]> = self.rules().into();
        for (rule, count) in rules.iter_mut().zip(counts) {
            *rule = rule.clone().with_count(count.min(rule.greatest_count()));
        }
        self.variant(self.with_rules(rules))
    }

    /// Returns the policy's part for one of `processes`: its counts are divided by their number and rounded up. The
    /// denials of a ban are not divided: smaller counts deny more calls that no other process would deny.
    pub(crate) fn part_of(&self, processes: NonZeroU64) -> Cow<'_, Self> {
        if processes == NonZeroU64::MIN {
            return Cow::Borrowed(self);
        }
        let part = || self.with_rules(self.rules().iter().map(|rule| rule.clone().divided(processes)).collect());
        match self.inner.part.get_or_init(|| (processes, self.alike(part()))) {
            (known, part) if *known == processes => Cow::Borrowed(part),
            // Limiters that divide by different numbers may share the policy.
            _ => Cow::Owned(Self::counted(part())),
        }
    }

    /// Returns the policy with those settings that are given.
    pub(crate) fn with_settings(&self, given: PolicySettings) -> Self {
        let own = self.inner.settings;
        let settings = PolicySettings {
            on_outage: given.on_outage.or(own.on_outage),
            deadline: given.deadline.or(own.deadline),
            warn_at: given.warn_at.or(own.warn_at),
            // A file cannot change `prefetch`: another time begins new tallies.
            prefetch: own.prefetch,
            takes_nothing_ahead: own.takes_nothing_ahead || given.takes_nothing_ahead,
            shadow: given.shadow.or(own.shadow),
            // Neither can it make subjects pausable, whose tallies have other keys.
            longest_pause: own.longest_pause,
        };
        let trials = self.trials().iter().map(|trial| trial.with_settings(settings)).collect();
        self.variant(PolicyInner { trials, settings, ..self.with_rules(self.rules().into()) })
    }

    /// Returns the policy with these templates. This process knows it like one that was built, as the latter may be
    /// gone.
    pub(crate) fn with_templates(&self, templates: Templates) -> Self {
        Self::known(PolicyInner { templates, ..self.with_rules(self.rules().into()) })
    }

    /// Returns the policy with this key for the subject with that label, so that tools can show it.
    pub(crate) fn with_template(&self, label: Option<String>, key: &str) -> Self {
        let mut templates = self.templates().clone();
        templates.set(label.map(Into::into), key.to_owned().into());
        self.with_templates(templates)
    }

    /// Returns the policy with counts at some places that each call gives, by [`with_counts`](Self::with_counts). This
    /// process knows it like one that was built, so tools do not take its counts for those of a call.
    pub(crate) fn with_varying_counts(&self, varies: impl Fn(usize) -> bool) -> Self {
        let varying = |(at, rule): (usize, &Rule)| if varies(at) { rule.clone().varying() } else { rule.clone() };
        let rules = self.rules().iter().enumerate().map(varying).collect();
        Self::known(PolicyInner { templates: self.templates().clone(), ..self.with_rules(rules) })
    }

    fn known(inner: PolicyInner) -> Self {
        let policy = Self::counted(inner);
        registry::register(&policy);
        policy
    }

    /// Returns the policy with other rules on one of its subjects, which are not checked. `None` says that nothing
    /// changes.
    pub(crate) fn with_replacement(&self, label: Option<&str>, replacement: &Replacement) -> Option<Self> {
        let rules = replacement.apply(&self.effective_rules(), label)?;
        let (rules, replaced): (Vec<_>, Vec<_>) =
            rules.into_iter().map(|EffectiveRule { label, rule, position }| ((label, rule), position)).unzip();
        let PolicyInner { name, ban, settings, .. } = &*self.inner;
        let paused = self.paused_label().map(str::to_owned);
        let mut inner = PolicyInner::new(name.clone(), rules, *ban, *settings, paused.as_ref(), replaced.into());
        RuleGroup::keep_places(&mut inner.groups, name, self.groups(), self.origin().groups());
        Some(self.variant(inner))
    }

    /// Returns the rules in force, each with the label of its subject and the position of the own rule that it is or
    /// replaces.
    pub(crate) fn effective_rules(&self) -> Vec<EffectiveRule> {
        let effective = |(place, rule): (usize, &Rule)| EffectiveRule {
            label: self.label(place).map(str::to_owned),
            rule: rule.clone(),
            position: self.replaced(place),
        };
        self.rules().iter().enumerate().map(effective).collect()
    }

    /// Returns the position of the own rule that the rule at `position` replaces, if there is one. Without an override,
    /// it is the rule itself.
    pub(crate) fn replaced(&self, position: usize) -> Option<usize> {
        if self.inner.replaced.is_empty() { Some(position) } else { self.inner.replaced.get(position).copied()? }
    }

    fn variant(&self, inner: PolicyInner) -> Self {
        Self::counted(PolicyInner { origin: Some(self.origin().clone()), ..inner })
    }

    /// Returns the policy with rules that differ only in their numbers.
    pub(super) fn with_rules(&self, rules: Box<[Rule]>) -> PolicyInner {
        let regroup = |group: &RuleGroup| {
            group.with_rules(group.positions.iter().filter_map(|&at| rules.get(at).cloned()).collect())
        };
        let groups = self.groups().iter().map(regroup).collect();
        let trials = self.trials().iter().map(|trial| trial.with_rules(&rules)).collect();
        let PolicyInner { name, ban, settings, replaced, is_trial, is_all_shadow, pause, .. } = &*self.inner;
        let inner = PolicyInner::from_parts(name.clone(), rules, *ban, groups, *settings, replaced.clone());
        PolicyInner { trials, is_trial: *is_trial, is_all_shadow: *is_all_shadow, pause: pause.clone(), ..inner }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Ban, RuleId};

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

    /// Returns a policy with rules on a network at positions 0 and 2, and on the main subject at 1 and 3.
    fn policy() -> Policy {
        let builder = Policy::builder("sms").rule_on("ip", rule(9, 1)).rule(rule(1, 1).named("short"));
        let builder = builder.rule_on("ip", rule(99, 60).named("ip.hourly")).rule(rule(5, 60));
        builder.ban(Ban::new(3, MINUTE, 10 * MINUTE)).build().unwrap()
    }

    fn replaced(policy: &Policy) -> Vec<Option<usize>> {
        (0..policy.rules().len()).map(|position| policy.replaced(position)).collect()
    }

    #[test]
    fn other_counts_change_neither_name_nor_tallies() {
        let rules =
            [Rule::sliding_window(1, MINUTE), Rule::sliding_counter(1, MINUTE), Rule::token_bucket(2, 2 * MINUTE)];
        let policy = Policy::builder("sms").rules(rules).build().unwrap();
        let other = policy.with_counts([u64::MAX, u64::MAX]);
        assert_eq!((other.name(), &other.groups()[0].segment), (policy.name(), &policy.groups()[0].segment));
        assert_eq!(other.rules().iter().map(Rule::count).collect::<Vec<_>>(), [1 << 31, 1 << 26, 2]);
    }

    #[test]
    fn any_counts_leave_a_policy_sound() {
        let bucket = tallygate_rules::TokenBucket::new(MINUTE);
        for bucket in [bucket, bucket.with_capacity(9), bucket.with_capacity(9).with_initial(9)] {
            let rule = Rule::from_bucket(1, bucket);
            let policy = Policy::builder("sms").rule(rule).build().unwrap();
            assert!(
                tallygate_rules::validate(policy.with_counts([u64::MAX]).rules(), tallygate_rules::Costs::Any).is_ok()
            );
            assert_eq!(policy.with_counts([0]).rules()[0].capacity(), Some(0));
        }
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
    fn variants_of_a_policy_have_its_templates() {
        let hour = Duration::from_secs(3_600);
        let rules =
            Policy::builder("p").rule(Rule::sliding_window(1, hour)).rule_on("ip", Rule::sliding_window(2, hour));
        let policy = rules.key("old").key("u:{id}").key_on("ip", "{ip}").build().unwrap();
        let replacement = Replacement::All(vec![Rule::sliding_window(9, 2 * hour)]);
        let replaced = policy.with_counts([5]).with_replacement(None, &replacement).unwrap();
        for variant in [&policy, &policy.with_counts([5]), &replaced] {
            assert_eq!((variant.key(), variant.templates().get(Some("ip"))), (Some("u:{id}"), Some("{ip}")));
            assert!(variant.origin().is_clone_of(&policy));
            assert_eq!(variant.templates().get(Some("network")), None);
        }
    }
}
