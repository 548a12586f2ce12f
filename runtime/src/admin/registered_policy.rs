//! A policy that a process has listed.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tallygate_rules::{Ban, EffectiveRule, Rule, format_rules};

use super::template::{self, KeyTemplate, Placeholder};
use crate::bounds::DESCRIPTION_BYTES;
use crate::error::Error;
use crate::limiter::{Limiter, OverrideBuilder};
use crate::policy::{Description, NO_REGISTRY, PlanCounts, Policy, PolicyBuilder, PolicySettings};
use crate::subject::Subject;
use crate::subject::filters::Secret;

/// A policy that a process has listed: see [`Limiter::registered_policies`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredPolicy {
    described: Description,
    rules: Vec<Rule>,
    seen: SystemTime,
    /// Whether the entry says if the policy is in shadow.
    says_shadow: bool,
}

/// Another subject of a [`RegisteredPolicy`], beside the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredSubject<'a> {
    label: &'a str,
    key: Option<&'a str>,
}

impl RegisteredPolicy {
    /// Reads an entry: seconds since 1970, a space, and a description.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (seconds, described) = text.split_once(' ').ok_or("it does not begin with a time")?;
        let seen = seconds.parse().ok().and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        let seen = seen.ok_or("it does not begin with a time")?;
        if described.len() > DESCRIPTION_BYTES {
            return Err(format!("it has more than {DESCRIPTION_BYTES} bytes"));
        }
        let described = Description::read(described)?;
        let rules = described.rules.iter().map(|(_, rule)| rule.clone()).collect();
        Ok(Self { described, rules, seen, says_shadow: true })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.described.name
    }

    /// Returns how the main subject is written, like `sms:{phone}`.
    ///
    /// It is empty if all calls are counted together. It is `None` if it is not known: the policy was built by hand,
    /// without [`PolicyBuilder::key`](crate::PolicyBuilder::key).
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.described.key.as_deref()
    }

    /// Returns the subjects beside the main one.
    pub fn subjects(&self) -> impl Iterator<Item = RegisteredSubject<'_>> {
        self.described.subjects.iter().map(|(label, key)| RegisteredSubject { label, key: key.as_deref() })
    }

    /// Returns the rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the rules as text, separated by `, `: `1 per 1m, 10 per 1d as daily`. A count that each call gives is
    /// written `n`.
    #[must_use]
    pub fn rules_text(&self) -> String {
        format_rules(&self.rules)
    }

    /// Returns the label of the subject that the rule at that position counts, or `None` for the main subject.
    #[must_use]
    pub fn label_of(&self, position: usize) -> Option<&str> {
        let (subject, _) = self.described.rules.get(position)?;
        self.described.subjects.get((*subject)?).map(|(label, _)| label.as_str())
    }

    /// Returns whether any rule, or the ban, counts the main subject.
    #[must_use]
    pub fn has_main_subject(&self) -> bool {
        self.ban().is_some() || self.described.rules.iter().any(|(subject, _)| subject.is_none())
    }

    /// Returns the longest pause of a subject, if subjects can be paused.
    #[must_use]
    pub fn longest_pause(&self) -> Option<Duration> {
        self.described.longest_pause
    }

    /// Returns the ban of subjects that are denied too often, if there is one.
    #[must_use]
    pub fn ban(&self) -> Option<Ban> {
        self.described.ban
    }

    /// Returns the counts of plans that the file of the process has for this policy, by the names of the plans, if each call
    /// gives the count of a rule. Which rule it is, only the process knows, unless there is one, or one of each unit.
    pub fn plans(&self) -> impl Iterator<Item = (&str, &PlanCounts)> {
        self.described.plans.iter().map(|(name, counts)| (name.as_str(), counts))
    }

    /// Returns how long its calls are [taken ahead](crate::PolicyBuilder::prefetch), if they are.
    #[must_use]
    pub fn prefetch(&self) -> Option<Duration> {
        self.described.prefetch
    }

    /// Returns whether the policy is in shadow: its calls always run.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.described.is_shadow || self.rules.iter().all(Rule::is_shadow)
    }

    /// Returns whether the policy is in shadow; `None` if its entry does not say.
    pub(super) fn shadow(&self) -> Option<bool> {
        self.says_shadow.then(|| self.is_shadow())
    }

    /// Returns whether the process that registered the policy last has a [secret](crate::LimiterBuilder::secret);
    /// `None` if that is not known, because no key of the policy shows a digest.
    #[must_use]
    pub fn has_secret(&self) -> Option<bool> {
        self.described.secret.as_deref().map(|fingerprint| fingerprint != Secret::public().fingerprint())
    }

    /// Whether the process that listed the policy may have this secret.
    pub(super) fn may_have(&self, secret: &Secret) -> bool {
        self.described.secret.as_ref().is_none_or(|fingerprint| *fingerprint == secret.fingerprint())
    }

    /// Returns the library version of the process that registered the policy last.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.described.version
    }

    /// Returns when the policy was registered last, by the clock of the server. Each process that uses it does this
    /// about once a day.
    #[must_use]
    pub fn seen(&self) -> SystemTime {
        self.seen
    }

    /// Builds the policy, with the same tallies, bans included. This process does not register it.
    ///
    /// # Errors
    ///
    /// This version refuses the rules, which another version accepted.
    pub fn policy(&self) -> Result<Policy, Error> {
        self.policy_with(|_, rule| rule.clone())
    }

    /// Builds the policy with rules that take the place of its own.
    pub(super) fn policy_with(&self, rule: impl Fn(usize, &Rule) -> Rule) -> Result<Policy, Error> {
        let builder = Policy::builder(self.name().to_owned());
        let rules = self.effective_rules().enumerate();
        let builder = rules.fold(builder, |builder, (at, own)| builder.rule_of(own.label, rule(at, &own.rule)));
        let builder = self.ban().into_iter().fold(builder, PolicyBuilder::ban);
        let (longest_pause, prefetch) = (self.longest_pause(), self.prefetch());
        let builder = builder.with_settings(PolicySettings { prefetch, longest_pause, ..PolicySettings::NONE });
        let paused = self.described.paused.and_then(|paused| self.described.subjects.get(paused));
        let builder = paused.into_iter().fold(builder, |builder, (label, _)| builder.pausable_on(label.clone()));
        let builder = self.key().into_iter().fold(builder, |builder, key| builder.key(key.to_owned()));
        let builder = self.subjects().fold(builder, |builder, RegisteredSubject { label, key }| {
            key.into_iter().fold(builder, |builder, key| builder.key_on(label.to_owned(), key.to_owned()))
        });
        let policy = builder.build_unlisted()?;
        policy.registration().set_done(NO_REGISTRY);
        Ok(policy)
    }

    /// Starts an [override](Limiter::override_policy) of this policy. It is checked by the rules of the list, whatever this
    /// process knows.
    pub fn override_rules<'l>(&self, limiter: &'l Limiter) -> OverrideBuilder<'l> {
        limiter.override_policy(self.name()).in_place_of(self.effective_rules().collect())
    }

    fn effective_rules(&self) -> impl Iterator<Item = EffectiveRule> {
        let effective = |(position, rule): (usize, &Rule)| EffectiveRule {
            label: self.label_of(position).map(str::to_owned),
            rule: rule.clone(),
            position: Some(position),
        };
        self.rules.iter().enumerate().map(effective)
    }

    /// Checks that a subject, as it stands in keys, can be one that the rules of that label count; without a label,
    /// those of the main subject. If the key is not known, any subject can be one.
    ///
    /// # Errors
    ///
    /// It fits no key of the policy. The error shows the key and an example.
    pub fn check_subject(&self, label: Option<&str>, subject: &Subject) -> Result<(), Error> {
        let Some(template) = self.template(label)? else { return Ok(()) };
        let subject = subject.to_string();
        if template.fits(&subject) {
            return Ok(());
        }
        let (name, key, example) = (self.name(), self.key_of(label).unwrap_or_default(), template.example());
        Err(Error::new(match key {
            "" => format!("policy `{name}` counts all calls together, so it has no subject `{subject}`; leave it out"),
            _ => format!("policy `{name}` has no subject `{subject}`: its key is `{key}`; write it like `{example}`"),
        }))
    }

    /// Reads a text that may be a whole subject of that label, or the main one without a label, instead of a value. Such a text
    /// has the text of the key around its values.
    #[must_use]
    pub fn read_subject(&self, label: Option<&str>, text: &str) -> Option<Subject> {
        let template = self.template(label).ok()??;
        Subject::from_rendered(text).ok().filter(|subject| template.has_text() && template.fits(&subject.to_string()))
    }

    fn template(&self, label: Option<&str>) -> Result<Option<KeyTemplate>, Error> {
        self.key_of(label).map(|key| KeyTemplate::read(self.name(), key)).transpose()
    }

    pub(super) fn key_of(&self, label: Option<&str>) -> Option<&str> {
        match label {
            None => self.key(),
            Some(label) => self.subjects().find(|subject| subject.label() == label)?.key(),
        }
    }

    /// Returns the values that the keys show, in the order of their first appearance, those of the main key first.
    ///
    /// # Errors
    ///
    /// A key is not a template: it was set by hand with a mistake.
    pub fn placeholders(&self) -> Result<Vec<Placeholder>, Error> {
        let main = self.key().filter(|_| self.has_main_subject());
        let keys = main.into_iter().chain(self.subjects().filter_map(|subject| subject.key));
        let templates = keys.map(|key| KeyTemplate::read(self.name(), key)).collect::<Result<Vec<_>, _>>()?;
        Ok(template::placeholders(&templates))
    }

    /// Describes a policy of this process, as it was at that time. Only its calls know whether they are in shadow,
    /// unless the policy or a file says it.
    pub(super) fn of(policy: &Policy, plans: BTreeMap<String, PlanCounts>, seen: SystemTime) -> Self {
        let described = Description::of(policy, policy.is_shadow()).with_plans(plans);
        let rules = described.rules.iter().map(|(_, rule)| rule.clone()).collect();
        Self { described, rules, seen, says_shadow: policy.shadow().is_some() }
    }
}

impl<'a> RegisteredSubject<'a> {
    /// Returns its label.
    #[must_use]
    pub fn label(&self) -> &'a str {
        self.label
    }

    /// Returns how it is written, if known.
    #[must_use]
    pub fn key(&self) -> Option<&'a str> {
        self.key
    }
}
