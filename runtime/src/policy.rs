//! A policy: a named, ordered list of rules that decide a call together.

mod builder;
mod description;
mod layout;
mod plan_counts;
pub(crate) mod registry;
mod rule_group;
mod settings;
mod shared;
mod stored;
mod templates;
mod trial;
mod units;
mod variants;

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tallygate_rules::{Ban, OnOutage, Rule};

pub use self::builder::PolicyBuilder;
pub(crate) use self::description::Description;
pub(crate) use self::layout::LAYOUT_BYTES;
pub use self::plan_counts::PlanCounts;
#[cfg(feature = "admin")]
pub(crate) use self::rule_group::names;
pub(crate) use self::rule_group::{LABEL_BYTES, RuleGroup, TracedRules, own_name};
pub(crate) use self::settings::{Ahead, PolicySettings};
use self::shared::Shared;
pub(crate) use self::shared::{NO_REGISTRY, Registration};
pub(crate) use self::templates::Templates;
#[cfg(feature = "config")]
pub(crate) use self::templates::check_name;
pub(crate) use self::units::{GroupCost, SubjectCost, UnitCost};
use crate::observe::{Observed, PolicyMetrics};

/// A named, ordered list of rules that decide a call together.
///
/// Cloning is cheap: clones share the rules. Two policies are equal if they have the same name, the same rules on the
/// same subjects, the same ban, and the same settings.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate::{Policy, Rule};
///
/// let policy = Policy::builder("sms")
///     .rule(Rule::sliding_window(1, Duration::from_secs(60)))
///     .rule(Rule::sliding_window(10, Duration::from_secs(86_400)))
///     .build()?;
/// assert_eq!(policy.rules().len(), 2);
/// # Ok::<(), tallygate::Error>(())
/// ```
#[derive(Clone)]
pub struct Policy {
    inner: Shared<PolicyInner>,
}

#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct PolicyInner {
    name: Cow<'static, str>,
    rules: Box<[Rule]>,
    ban: Option<Ban>,
    /// The groups of the enforced rules.
    groups: Box<[RuleGroup]>,
    form: CallForm,
    /// Whether all rules count the main subject, and none is in shadow beside others.
    counts_only_main: bool,
    /// The rules in shadow, each a trial.
    trials: Box<[Trial]>,
    /// Whether this is the policy of a trial.
    is_trial: bool,
    /// Whether all rules are in shadow. Then they are decided together, as a policy in shadow.
    is_all_shadow: bool,
    settings: PolicySettings,
    /// The part of one process and the number of processes, once a standby has decided by it.
    part: OnceLock<(NonZeroU64, Policy)>,
    /// The stored policy, once Redis has been asked about a call that may be taken ahead.
    stored: OnceLock<Stored>,
    /// For each rule of an override, the position of the policy's own rule that it replaces. Without an override, it is
    /// empty.
    replaced: Box<[Option<usize>]>,
    /// The group of the pauses of the subject that can be paused, if there is one.
    pause: Option<Arc<RuleGroup>>,
    /// Whether a rule counts another unit than calls.
    has_units: bool,
    /// The templates of its subjects, as far as they are known.
    templates: Templates,
    /// The policy of which this is a variant, with the same tallies or with other rules.
    origin: Option<Policy>,
    /// The registries that list the policy, as far as it is known.
    registration: Registration,
    metrics: PolicyMetrics,
}

/// What a call without options asks a store for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallForm {
    /// The outcome on the main subject.
    Plain,
    /// The outcome on the main subject, whose permit holds a lease, which a concurrency limit alone decides, or may pause it.
    Permit,
    /// The outcome on the main subject, in several units whose tallies have one entry in memory.
    Units,
    /// The outcome on any subjects and in any units. One of the subjects may be paused.
    Counted,
    /// A lease beside other rules, a report, or rules in shadow.
    General,
}

/// A policy as Redis decides it if calls are taken ahead. It has tallies of its own, because each call may be made up
/// to `ahead` after it was counted.
pub(crate) struct Stored {
    pub(crate) policy: Policy,
    ahead: Ahead,
    /// For each group, whether its calls are taken ahead. Some rules have to count each call when it is made.
    taken: Box<[bool]>,
    /// The policies for calls on some groups alone, each with a flag for each group.
    rests: Mutex<Vec<(Box<[bool]>, Policy)>>,
}

#[derive(Clone)]
pub(crate) struct Trial {
    /// The policy of the rule alone.
    pub(crate) policy: Policy,
    /// The label of the rule's subject; `None` for the main one.
    pub(crate) label: Option<Arc<str>>,
}

impl Policy {
    /// Returns the name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the rules in the order in which they were given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.inner.rules
    }

    /// Returns the ban of subjects that are denied too often, if there is one.
    #[must_use]
    pub fn ban(&self) -> Option<Ban> {
        self.inner.ban
    }

    /// Returns how its calls are decided while Redis is away, if the policy says so. Otherwise, the limiter does.
    #[must_use]
    pub fn on_outage(&self) -> Option<OnOutage> {
        self.inner.settings.on_outage
    }

    /// Returns the longest time that a decision takes, if the policy says so. Otherwise, the limiter does.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.inner.settings.deadline
    }

    /// Returns the share of a limit from which a subject is near it, if the policy [warns](PolicyBuilder::warn_at) of
    /// that.
    #[must_use]
    #[inline]
    pub fn warn_at(&self) -> Option<f64> {
        self.inner.settings.warn_at
    }

    /// Returns the label of the subject that can be [paused](PolicyBuilder::pausable_on); `None` is the main one, or
    /// none can be paused.
    #[must_use]
    pub fn paused_label(&self) -> Option<&str> {
        self.pause_group()?.label.as_deref()
    }

    /// Returns the longest pause of a subject, if subjects can be [paused](PolicyBuilder::pausable).
    #[must_use]
    #[inline]
    pub fn longest_pause(&self) -> Option<Duration> {
        self.inner.settings.longest_pause
    }

    /// Returns whether the policy itself is in [shadow](PolicyBuilder::shadow), so that it denies nothing. A call, a
    /// file or an override may also put it in shadow.
    #[must_use]
    #[inline]
    pub fn is_shadow(&self) -> bool {
        self.shadow() == Some(true) || self.is_all_shadow()
    }

    #[inline]
    pub(crate) fn is_all_shadow(&self) -> bool {
        self.inner.is_all_shadow
    }

    /// Returns whether the policy is in shadow, if it says so.
    #[inline]
    pub(crate) fn shadow(&self) -> Option<bool> {
        self.inner.settings.shadow
    }

    /// Returns the template of its main subject, like `sms:{phone}`, if it is known: see [`PolicyBuilder::key`].
    ///
    /// The template is empty for an annotated function without `key`, whose calls are counted together.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.templates().get(None)
    }

    pub(crate) fn templates(&self) -> &Templates {
        &self.origin().inner.templates
    }

    /// Returns the policy of which this is a variant, or the policy itself.
    #[inline]
    pub(crate) fn origin(&self) -> &Self {
        self.inner.origin.as_ref().unwrap_or(self)
    }

    #[inline]
    pub(crate) fn registration(&self) -> &Registration {
        &self.inner.registration
    }

    /// Whether an annotated function has built this policy.
    #[cfg(feature = "config")]
    pub(crate) fn is_of_function(&self) -> bool {
        self.inner.is_static()
    }

    /// Whether both are clones of one policy, and so have the same counts.
    #[inline]
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        ptr::eq(&raw const *self.inner, &raw const *other.inner)
    }

    /// Whether both have the same enforced rules on the same subjects.
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        let alike = |(one, other): (&RuleGroup, &RuleGroup)| one.label == other.label && one.rules == other.rules;
        let (own, others) = (self.groups(), other.groups());
        self.is_clone_of(other) || own.len() == others.len() && own.iter().zip(others).all(alike)
    }

    /// Whether a cached denial may answer the next calls. It may not if a ban counts every denial, or if an ending call
    /// may make room at any time.
    pub(crate) fn caches_denials(&self) -> bool {
        self.inner.ban.is_none() && !self.has_leases()
    }

    /// Returns the name as it stands in keys.
    pub(crate) fn escaped_name(&self) -> &str {
        self.groups().first().map_or("", |group| own_name(&group.segment))
    }

    /// Returns a policy of checked rules, each with the label of its subject. The process does not know it.
    pub(crate) fn of_checked(name: String, rules: Vec<(Option<String>, Rule)>, settings: PolicySettings) -> Self {
        let inner = PolicyInner::new(name.into(), rules, None, settings, None, Box::default());
        Self::counted(inner)
    }

    #[inline]
    pub(crate) fn observed(&self) -> Observed<'_> {
        Observed { policy: self.name(), rules: self.rules(), metrics: &self.inner.metrics }
    }
}

impl Policy {
    /// Returns the enforced rules by subject: one tally for each group.
    #[inline]
    pub(crate) fn groups(&self) -> &[RuleGroup] {
        &self.inner.groups
    }

    /// Returns the group of the pauses of the subject that can be paused, which has no rules; `None` if there is none.
    #[inline]
    pub(crate) fn pause_group(&self) -> Option<&RuleGroup> {
        self.inner.pause.as_deref()
    }

    /// Whether the outcome of a call, on the main subject alone, is all that the policy asks a store for. Nothing of it is in shadow.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.inner.form == CallForm::Plain
    }

    /// Whether the policy asks a store for the outcome on the main subject, in one tally, and the permit of a call without
    /// options holds something: a lease, or what pauses the subject.
    #[inline]
    pub(crate) fn is_plain_with_permit(&self) -> bool {
        self.inner.form == CallForm::Permit
    }

    /// Whether the outcome of a call, on the main subject alone and in units, is all that the policy asks a store for.
    #[inline]
    pub(crate) fn is_plain_in_units(&self) -> bool {
        self.inner.form == CallForm::Units
    }

    /// Whether the policy asks a store for nothing but the outcome of a call, on whatever subjects and in whatever units.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.inner.form != CallForm::General && !self.has_leases()
    }

    /// Whether all rules count the main subject, and none is in shadow beside others.
    #[inline]
    pub(crate) fn counts_only_main(&self) -> bool {
        self.inner.counts_only_main
    }

    /// Whether the policy limits concurrent calls.
    #[inline]
    pub(crate) fn has_leases(&self) -> bool {
        // The groups of concurrency limits come last.
        self.groups().last().is_some_and(|group| group.lease_us.is_some())
    }

    /// Returns the number of groups without a concurrency limit. They come first.
    pub(crate) fn counting_groups(&self) -> usize {
        self.groups().iter().take_while(|group| group.lease_us.is_none()).count()
    }

    /// Returns the index of the group with the rule at that position.
    pub(crate) fn group_of(&self, position: usize) -> Option<usize> {
        self.groups().iter().position(|group| group.positions.contains(&position))
    }

    /// Returns the place of the first rule of this group, among the rules of all groups in order.
    pub(crate) fn first_place(&self, group: usize) -> usize {
        self.groups().iter().take(group).map(|group| group.rules.len()).sum()
    }

    /// Returns the position of a rule by its place in all groups, one group after the other.
    pub(crate) fn position(&self, place: usize) -> usize {
        if let [group] = self.groups() {
            return group.positions.get(place).copied().unwrap_or(place);
        }
        let positions = self.groups().iter().flat_map(|group| group.positions.iter());
        positions.copied().nth(place).unwrap_or(place)
    }

    /// Returns the label of the subject that the rule at that position counts; `None` for the main one.
    pub(crate) fn label(&self, position: usize) -> Option<&str> {
        let of_trial = || self.trials().iter().find(|trial| trial.is_of(position))?.label.as_deref();
        match self.group_of(position) {
            Some(group) => self.groups().get(group)?.label.as_deref(),
            None => of_trial(),
        }
    }
}

impl Policy {
    fn counted(inner: PolicyInner) -> Self {
        Self { inner: Shared::counted(inner.finished()) }
    }

    /// Returns a policy that lives as long as this one.
    fn alike(&self, inner: PolicyInner) -> Self {
        Self { inner: self.inner.share_alike(inner.finished()) }
    }
}

impl PolicyInner {
    /// Notes what follows from the other parts, so that no call has to look at them.
    fn finished(self) -> Self {
        let PolicySettings { warn_at, longest_pause, shadow, .. } = self.settings;
        let is_enforced = self.trials.is_empty() && !self.is_all_shadow && shadow != Some(true);
        let asks_for_outcome = is_enforced && warn_at.is_none();
        let is_pausable = longest_pause.is_some();
        let form = match &*self.groups {
            _ if !asks_for_outcome => CallForm::General,
            [group] if group.is_plain => match (group.lease_us, &self.pause) {
                (None, None) => CallForm::Plain,
                (Some(_), None) | (None, Some(_)) => CallForm::Permit,
                (Some(_), Some(_)) => CallForm::General,
            },
            groups if groups.iter().any(|group| group.lease_us.is_some()) => CallForm::General,
            [first, ..] if !is_pausable && self.has_units && self.groups.iter().all(|group| group.is_beside(first)) => {
                CallForm::Units
            }
            _ => CallForm::Counted,
        };
        let counts_only_main = self.trials.is_empty() && self.groups.iter().all(|group| group.label.is_none());
        Self { form, counts_only_main, ..self }
    }

    fn new(
        name: Cow<'static, str>,
        rules: Vec<(Option<String>, Rule)>,
        ban: Option<Ban>,
        settings: PolicySettings,
        paused: Option<&String>,
        replaced: Box<[Option<usize>]>,
    ) -> Self {
        let mut groups = RuleGroup::gather(&name, &rules, ban);
        let pause = settings.longest_pause.map(|_| Arc::new(RuleGroup::of_pauses(&name, paused)));
        if let Some(pause) = &pause {
            RuleGroup::keep_in_slot_of_pause(&mut groups, pause);
        }
        let trial_groups = RuleGroup::gather_trials(&name, &rules);
        // If all rules are in shadow, they decide together what they would deny.
        let is_all_shadow = rule_group::are_all_shadow(&rules);
        let rules: Box<[Rule]> = rules.into_iter().map(|(_, rule)| rule).collect();
        let trials =
            trial_groups.into_iter().map(|group| Trial::new(&name, &rules, group, settings, &replaced)).collect();
        Self { trials, is_all_shadow, pause, ..Self::from_parts(name, rules, ban, groups.into(), settings, replaced) }
    }

    fn from_parts(
        name: Cow<'static, str>,
        rules: Box<[Rule]>,
        ban: Option<Ban>,
        groups: Box<[RuleGroup]>,
        settings: PolicySettings,
        replaced: Box<[Option<usize>]>,
    ) -> Self {
        let metrics = PolicyMetrics::new(rules.len());
        let has_units = rules.iter().any(|rule| rule.unit().is_some());
        Self {
            name,
            rules,
            ban,
            groups,
            form: CallForm::General,
            counts_only_main: false,
            trials: Box::default(),
            is_trial: false,
            is_all_shadow: false,
            settings,
            part: OnceLock::new(),
            stored: OnceLock::new(),
            replaced,
            pause: None,
            has_units,
            templates: Templates::default(),
            origin: None,
            registration: Registration::default(),
            metrics,
        }
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        // The groups do not show the order of all rules, so the rules are compared, too.
        self.is_clone_of(other)
            || self.name() == other.name()
                && self.ban() == other.ban()
                && self.inner.settings == other.inner.settings
                && self.paused_label() == other.paused_label()
                && self.rules() == other.rules()
                && self.has_rules_of(other)
                && self.subject_labels().eq(other.subject_labels())
    }
}

impl Eq for Policy {}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<_> = self.rules().iter().map(ToString::to_string).collect();
        f.debug_struct("Policy").field("name", &self.name()).field("rules", &rules).field("ban", &self.ban()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_equal_if_their_rules_count_the_same_subjects_in_shadow_too() {
        let minute = Duration::from_secs(60);
        let counted_on = |label| {
            let builder = Policy::builder("p").rule(Rule::sliding_window(1, minute));
            builder.rule_on(label, Rule::sliding_window(5, 10 * minute).shadow()).build().unwrap()
        };
        assert_eq!(counted_on("a"), counted_on("a"));
        assert_ne!(counted_on("a"), counted_on("b"));
    }
}
