//! Rules in shadow, which are tried out beside the enforced rules. Each trial is a policy of its own that denies
//! nothing.
//!
//! A trial has the name and the rules of its policy, so that reports name the rule by its position there.

use std::sync::Arc;

use tallygate_rules::Rule;

use super::rule_group::RuleGroup;
use super::shared::NO_REGISTRY;
use super::{Policy, PolicyInner, PolicySettings, Trial};

impl Trial {
    pub(super) fn new(
        name: &str,
        rules: &[Rule],
        group: RuleGroup,
        settings: PolicySettings,
        replaced: &[Option<usize>],
    ) -> Self {
        let label = group.label.clone();
        let settings = settings_of(settings);
        let groups = Box::new([group]);
        let inner =
            PolicyInner::from_parts(name.to_owned().into(), rules.into(), None, groups, settings, replaced.into());
        Self { policy: Policy::of_trial(inner), label }
    }

    /// Returns the trial with rules that differ only in their numbers.
    pub(super) fn with_rules(&self, rules: &[Rule]) -> Self {
        Self { policy: Policy::of_trial(self.policy.with_rules(rules.into())), label: self.label.clone() }
    }

    /// Returns the trial in a policy with other settings.
    pub(super) fn with_settings(&self, settings: PolicySettings) -> Self {
        let inner = self.policy.with_rules(self.policy.rules().into());
        Self {
            policy: Policy::of_trial(PolicyInner { settings: settings_of(settings), ..inner }),
            label: self.label.clone(),
        }
    }

    /// Whether the trial is of the rule at that position.
    pub(super) fn is_of(&self, position: usize) -> bool {
        self.policy.groups().iter().any(|group| group.positions.contains(&position))
    }
}

/// A trial has the policy's settings for outages and deadlines.
fn settings_of(policy: PolicySettings) -> PolicySettings {
    PolicySettings { warn_at: None, prefetch: None, shadow: None, longest_pause: None, ..policy }
}

impl Policy {
    fn of_trial(inner: PolicyInner) -> Self {
        let policy = Self::counted(PolicyInner { is_trial: true, ..inner });
        policy.registration().set_done(NO_REGISTRY);
        policy
    }

    #[inline]
    pub(crate) fn trials(&self) -> &[Trial] {
        &self.inner.trials
    }

    /// Whether a trial counts the calls of that subject.
    pub(crate) fn has_trial_of(&self, label: Option<&str>) -> bool {
        let mut trials = self.trials().iter().filter(|trial| trial.label.as_deref() == label);
        trials.any(|trial| trial.policy.counting_groups() > 0)
    }

    /// Whether this is the policy of a trial.
    #[inline]
    pub(crate) fn is_trial(&self) -> bool {
        self.inner.is_trial
    }

    /// Returns the labels of a call's subjects: one for each group, and then one for each trial.
    pub(crate) fn subject_labels(&self) -> impl Iterator<Item = Option<&Arc<str>>> {
        let enforced = self.groups().iter().map(|group| group.label.as_ref());
        enforced.chain(self.trials().iter().map(|trial| trial.label.as_ref()))
    }

    /// Returns the label of each subject, with the index of its first place among the subjects of a call.
    pub(crate) fn first_places(&self) -> Vec<(usize, Option<&str>)> {
        let mut places: Vec<(usize, Option<&str>)> = Vec::new();
        for (index, label) in self.subject_labels().enumerate() {
            let label = label.map(|label| &**label);
            if places.iter().all(|(_, known)| *known != label) {
                places.push((index, label));
            }
        }
        places
    }
}
