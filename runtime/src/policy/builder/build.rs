//! Builds policies, and refuses mistaken ones.

use std::iter;

use tallygate_rules::{
    Costs, CountedSubject, Rule, RuleError, is_blank, validate_ban, validate_by_subject, validate_deadline,
    validate_longest_pause, validate_prefetch, validate_warn_at,
};

use super::PolicyBuilder;
use crate::error::Error;
use crate::policy::shared::Shared;
use crate::policy::templates::mistakes_in_texts;
use crate::policy::{Policy, PolicyInner, registry};

impl PolicyBuilder {
    /// Validates the policy, and makes it known to [`Limiter::policy`](crate::Limiter::policy).
    ///
    /// # Errors
    ///
    /// Returns an error for a blank name or label, a key that is no template or that no rule uses, or a mistake in the
    /// rules, the ban, the deadline, `warn_at`, `prefetch` or the longest pause that the attribute refuses at compile time. It lists all
    /// mistakes: see [`Error::rule_errors`].
    pub fn build(self) -> Result<Policy, Error> {
        let labels: Vec<_> = self.rules.iter().filter_map(|(label, _)| label.as_deref()).collect();
        let names = iter::once(&*self.name).chain(self.rules.iter().filter_map(|(_, rule)| rule.name()));
        let texts = mistakes_in_texts(names, &labels, &self.templates);
        let prefetch = self.mistakes_in_prefetch();
        self.build_known(Shared::counted, texts, prefetch)
    }

    /// Builds a policy that the process keeps for its life. The attribute has checked its texts.
    pub(crate) fn build_static(self) -> Result<Policy, Error> {
        let prefetch = self.mistakes_in_prefetch();
        self.build_known(Shared::leaked, Vec::new(), prefetch)
    }

    /// Builds a policy that this process does not know: one that another process has registered, or one of a rehearsal.
    /// The texts and `prefetch` are not checked: the other process may have accepted the texts, and a file or an
    /// override may have given the policy rules of which it takes nothing ahead.
    #[cfg(feature = "redis")]
    pub(crate) fn build_unlisted(self) -> Result<Policy, Error> {
        self.build_as(Shared::counted, Vec::new(), Vec::new())
    }

    /// A check by hand may have any key, so only the labels of the subjects are known.
    fn rules_by_subject(&self) -> Vec<(CountedSubject<'_>, Rule)> {
        let subjects = self.rules.iter().map(|(label, _)| CountedSubject::labelled(label.as_deref()));
        subjects.zip(self.rules.iter().map(|(_, rule)| rule.clone())).collect()
    }

    fn mistakes_in_prefetch(&self) -> Vec<RuleError> {
        // A check by hand may have any cost.
        let mistakes = |ahead| validate_prefetch(ahead, &self.rules_by_subject(), |_| 1).err();
        self.settings.prefetch.and_then(mistakes).unwrap_or_default()
    }

    fn build_known(
        self,
        share: fn(PolicyInner) -> Shared<PolicyInner>,
        texts: Vec<String>,
        prefetch: Vec<RuleError>,
    ) -> Result<Policy, Error> {
        let policy = self.build_as(share, texts, prefetch)?;
        registry::register(&policy);
        Ok(policy)
    }

    fn build_as(
        self,
        share: fn(PolicyInner) -> Shared<PolicyInner>,
        texts: Vec<String>,
        prefetch: Vec<RuleError>,
    ) -> Result<Policy, Error> {
        // A check by hand may have any cost and any subjects, and may be refunded on one of these.
        let own = || self.rules.iter().map(|(_, rule)| rule);
        let rules = validate_by_subject(&self.rules_by_subject(), Costs::Recounted).err();
        let ban = self.ban.and_then(|ban| validate_ban(&ban, own()).err());
        let deadline = self.settings.deadline.and_then(|deadline| validate_deadline(deadline).err());
        let warn_at = self.settings.warn_at.and_then(|share| validate_warn_at(share, own()).err());
        let pause = self.settings.longest_pause.and_then(|longest| {
            let rules = self.rules.iter().map(|(label, rule)| (*label == self.paused, rule));
            validate_longest_pause(longest, rules, self.settings.prefetch.is_some()).err()
        });
        let settings = deadline.into_iter().chain(warn_at).chain(prefetch).chain(pause);
        let mistakes: Vec<_> = rules.into_iter().chain(ban).flatten().chain(settings).collect();
        if is_blank(&self.name) || !texts.is_empty() || !mistakes.is_empty() {
            return Err(Error::policy(&self.name, texts, &mistakes));
        }
        let inner =
            PolicyInner::new(self.name, self.rules, self.ban, self.settings, self.paused.as_ref(), Box::default());
        Ok(Policy { inner: share(PolicyInner { templates: self.templates, ..inner }.finished()) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_error_of_a_mistaken_policy_has_its_name_and_every_mistake() {
        let minute = Duration::from_secs(60);
        let mistaken =
            Policy::builder("sms").rule(Rule::sliding_window(0, minute)).rule(Rule::sliding_window(1, Duration::ZERO));
        let text = mistaken.build().unwrap_err().to_string();
        assert!(text.starts_with("policy `sms`: rule 0: `count` must be at least 1"), "{text}");
        assert!(text.contains("rule 1: `per` must be longer than zero"), "{text}");
    }

    #[test]
    fn the_subject_that_was_named_last_can_be_paused() {
        let second = Duration::from_secs(1);
        let calls = || Rule::sliding_window(5, second);
        let builder = || Policy::builder("partner").rule(calls()).rule_on("host", calls());
        let paused = |builder: PolicyBuilder| builder.build().unwrap().paused_label().map(str::to_owned);
        assert_eq!(paused(builder().pausable().pausable_on("host")).as_deref(), Some("host"));
        assert_eq!(paused(builder().pausable_on("host").pausable()), None);
        let kept = builder().longest_pause(second).pausable_on("host").build().unwrap();
        assert_eq!((kept.paused_label(), kept.longest_pause()), (Some("host"), Some(second)));
    }

    #[test]
    fn a_policy_needs_a_name_and_a_rule() {
        let text = |builder: PolicyBuilder| builder.build().unwrap_err().to_string();
        assert!(text(Policy::builder("sms")).contains("at least one rule"));
        let nameless = text(Policy::builder(""));
        assert!(nameless.starts_with("policy: `name` must not be empty"), "{nameless}");
        assert!(nameless.contains("at least one rule"), "{nameless}");
    }

    #[test]
    fn a_rule_is_refused_that_cannot_bind_however_its_calls_are_settled() {
        let minute = Duration::from_secs(60);
        let rules = |rules: [Rule; 2]| Policy::builder("sms").rules(rules).build();
        let text = rules([Rule::sliding_window(9, minute), Rule::fixed_window(9, minute)]).unwrap_err().to_string();
        assert!(text.contains("`9 per 1m` is at least as strict as `9 per fixed 1m`"), "{text}");
        // A call that is settled beyond its cost empties the bucket, and counts for a day.
        assert!(rules([Rule::token_bucket(1, minute), Rule::sliding_window(9_000, 1_440 * minute)]).is_ok());
        // A call may be refunded on one of the two subjects alone.
        let narrow = Policy::builder("sms").rule(Rule::sliding_window(9, minute)).key("{phone}");
        assert!(narrow.rule_on("all", Rule::sliding_window(9, minute)).key_on("all", "all").build().is_ok());
        let bucket = tallygate_rules::TokenBucket::new(minute).with_reset_after(Duration::from_secs(5));
        let text = Policy::builder("sms").rule(Rule::from_bucket(1, bucket)).build().unwrap_err().to_string();
        assert!(text.contains("write at least `reset_after = \"1m\"`"), "{text}");
    }

    #[test]
    fn a_text_that_is_blank_or_meant_to_show_a_value_is_refused() {
        let minute = Duration::from_secs(60);
        let builder = |name| Policy::builder(name).rule(Rule::sliding_window(1, minute));
        let text = |builder: PolicyBuilder| builder.build().unwrap_err().to_string();
        assert!(text(builder(" ")).starts_with("policy: `name` must not be empty"));
        for name in [builder("sms.%s"), builder("sms").rule(Rule::sliding_window(9, 2 * minute).named("a.%s"))] {
            assert!(text(name).contains("`%s` without braces is fixed text, so this `name` is the same"));
        }
        for name in [builder("{sms}"), builder("sms").rule(Rule::sliding_window(9, 2 * minute).named("{a}"))] {
            assert!(text(name).contains("`name` is fixed text; remove the braces"));
        }
        assert!(
            text(builder("sms").rule_on("\t", Rule::sliding_window(2, minute))).contains("a label must not be empty")
        );
        assert!(text(builder("sms").rule(Rule::sliding_window(9, 2 * minute).named(" "))).contains("`name` of a rule"));
        assert!(text(builder("sms").key(" ")).contains("`key` must not be empty"));
        assert!(text(builder("sms").key("@ip")).ends_with("write `{@ip}`"));
        assert!(text(builder("sms").key("sms:{phone")).contains("`key`: unmatched `{`"));
        let unused = text(builder("sms").key_on("network", "{@ip:subnet}"));
        assert_eq!(
            unused,
            "policy `sms`: `key_on` names the subject `network`, which no rule counts; add one by `rule_on`, or remove it"
        );
    }
}
