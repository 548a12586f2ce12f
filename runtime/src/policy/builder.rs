//! Building a policy, and refusing one that is mistaken.

use std::borrow::Cow;
use std::iter;
use std::time::Duration;

use tallygate_rules::{
    Ban, Costs, CountedSubject, EffectiveRule, OnOutage, Rule, RuleError, is_blank, validate_ban, validate_by_subject,
    validate_deadline, validate_prefetch, validate_warn_at,
};

use crate::error::Error;
use crate::policy::shared::Shared;
use crate::policy::templates::mistakes_in_texts;
use crate::policy::{Inner, Policy, PolicySettings, Templates, registry};

/// Builds a [`Policy`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PolicyBuilder {
    name: Cow<'static, str>,
    /// Each with the label of the subject it counts, unless that is the main one.
    rules: Vec<(Option<String>, Rule)>,
    ban: Option<Ban>,
    settings: PolicySettings,
    templates: Templates,
}

impl Policy {
    /// Starts a policy of that name. Policies of one name share their tallies.
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PolicyBuilder {
        PolicyBuilder {
            name: name.into(),
            rules: Vec::new(),
            ban: None,
            settings: PolicySettings::default(),
            templates: Templates::default(),
        }
    }

    /// Starts a policy like this one: to add what only the program knows to a policy of a file, for example.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule};
    ///
    /// let plain = Policy::builder("api").rule(Rule::sliding_window(1_000, Duration::from_secs(1))).build()?;
    /// let ahead = plain.to_builder().prefetch(Duration::from_millis(100)).build()?;
    /// assert_eq!(ahead.rules(), plain.rules());
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn to_builder(&self) -> PolicyBuilder {
        let Inner { name, ban, settings, .. } = &*self.inner;
        let rules = self.effective_rules().into_iter().map(|EffectiveRule { label, rule, .. }| (label, rule));
        PolicyBuilder {
            name: name.clone(),
            rules: rules.collect(),
            ban: *ban,
            settings: *settings,
            templates: self.templates().clone(),
        }
    }
}

impl PolicyBuilder {
    /// Adds a rule on the subject of the call.
    pub fn rule(mut self, rule: impl Into<Rule>) -> Self {
        self.rules.push((None, rule.into()));
        self
    }

    /// Adds the given rules on the subject of the call.
    pub fn rules(mut self, rules: impl IntoIterator<Item: Into<Rule>>) -> Self {
        self.extend(rules);
        self
    }

    /// Adds a rule on another subject of the call, which [`Check::subject`](crate::Check::subject) sets by this label.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let policy = Policy::builder("sms")
    ///     .rule(Rule::sliding_window(5, hour))
    ///     .rule_on("network", Rule::sliding_window(20, hour))
    ///     .build()?;
    ///
    /// let limiter = Limiter::in_memory();
    /// let phone = Subject::of("138");
    /// let network = Subject::of("10.0.0.0/24");
    /// assert!(limiter.check(&policy, &phone).subject("network", &network).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn rule_on(mut self, label: impl Into<String>, rule: impl Into<Rule>) -> Self {
        self.rules.push((Some(label.into()), rule.into()));
        self
    }

    /// Adds a rule on the subject of that label, or on the main one.
    #[cfg(any(feature = "admin", all(feature = "config", feature = "web")))]
    pub(crate) fn rule_of(mut self, label: Option<String>, rule: Rule) -> Self {
        self.rules.push((label, rule));
        self
    }

    /// Bans a subject that is denied too often: see [`Ban`].
    pub fn ban(mut self, ban: Ban) -> Self {
        self.ban = Some(ban);
        self
    }

    /// Sets what becomes of calls while Redis is away: see [`OnOutage`]. Without it, the
    /// [limiter's](crate::LimiterBuilder::on_outage) setting holds.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{OnOutage, Policy, Rule};
    ///
    /// let search = Policy::builder("search")
    ///     .rule(Rule::sliding_window(100, Duration::from_secs(60)))
    ///     .on_outage(OnOutage::Local)
    ///     .deadline(Duration::from_millis(50))
    ///     .build()?;
    /// assert_eq!(search.on_outage(), Some(OnOutage::Local));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.settings.on_outage = Some(on_outage);
        self
    }

    /// Sets the longest time that a decision takes, an hour at most. Without it, the
    /// [limiter's](crate::LimiterBuilder::deadline) setting holds.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = Some(deadline);
        self
    }

    /// Sets the share of a limit, between 0 and 1, from which a subject is near it: an admitted call then has a
    /// [warning](crate::Permit::warning), and the call with which a subject comes near the limit of a rule is counted in
    /// the metrics and handed to [`LimiterBuilder::on_warning`](crate::LimiterBuilder::on_warning).
    ///
    /// A subject is near the limit of a rule once it has used that share of its `count`, or of a bucket's capacity. Rules
    /// against duplicates, and those that one call uses up, warn of nothing; neither does what a call is
    /// [settled](crate::Permit::settle) for beyond its cost, so reserve what calls usually need. Each call asks for a
    /// [report](crate::Check::report) then, which costs the backend more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let monthly = Rule::sliding_window(100, Duration::from_secs(30 * 86_400));
    /// let policy = Policy::builder("api").rule(monthly).warn_at(0.8).build()?;
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    ///
    /// let permit = limiter.check(&policy, &alice).cost(79).await?.into_result()?;
    /// assert!(permit.warning().is_none());
    /// let permit = limiter.check(&policy, &alice).await?.into_result()?;
    /// assert_eq!(permit.warning().map(|status| status.remaining()), Some(20));
    /// # Ok(())
    /// # }
    /// ```
    pub fn warn_at(mut self, share: f64) -> Self {
        self.settings.warn_at = Some(share);
        self
    }

    /// Says how the main subject is written, as the `key` of the attribute does: `sms:{phone}`.
    ///
    /// It is for people and tools: [the list of policies](crate::guide::production#the-list-of-policies) in Redis shows it,
    /// and the command line makes subjects of it. It decides nothing. The policies of annotated functions and of files have
    /// it from there.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule};
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let policy = Policy::builder("sms.send")
    ///     .rule(Rule::sliding_window(5, hour))
    ///     .rule_on("network", Rule::sliding_window(20, hour))
    ///     .key("sms:{phone}")
    ///     .key_on("network", "{ip:subnet}")
    ///     .build()?;
    /// assert_eq!(policy.key(), Some("sms:{phone}"));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn key(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.templates.set(None, key.into());
        self
    }

    /// Says how the subject of that label is written: see [`key`](Self::key).
    pub fn key_on(mut self, label: impl Into<Cow<'static, str>>, key: impl Into<Cow<'static, str>>) -> Self {
        self.templates.set(Some(label.into()), key.into());
        self
    }

    /// Takes calls ahead from Redis, for at most that long, while a process is busy with a subject: it then decides them by
    /// itself. See the guide about [calls that are taken ahead](crate::guide::prefetch).
    ///
    /// It stays exact: in any window of length `per`, all processes together admit at most `count`. For that, Redis checks
    /// each window of length `per` as one of `per + ahead`, so a subject at its limit gets `per / (per + ahead)` of it. In memory, the
    /// policy decides as without it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule};
    ///
    /// let tenant = Policy::builder("tenant")
    ///     .rule(Rule::sliding_window(100_000, Duration::from_secs(1)))
    ///     .prefetch(Duration::from_millis(100))
    ///     .build()?;
    /// assert_eq!(tenant.prefetch(), Some(Duration::from_millis(100)));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn prefetch(mut self, ahead: Duration) -> Self {
        self.settings.prefetch = Some(ahead);
        self
    }

    /// Validates the policy, and makes it known to [`Limiter::policy`](crate::Limiter::policy).
    ///
    /// # Errors
    ///
    /// A blank name or label, a key that is no template or that no rule uses, or a mistake in the rules, the ban, the deadline,
    /// `warn_at` or `prefetch` that the attribute refuses at compile time. The error lists all of them: see [`Error::rule_errors`].
    pub fn build(self) -> Result<Policy, Error> {
        let labels: Vec<_> = self.rules.iter().filter_map(|(label, _)| label.as_deref()).collect();
        let names = iter::once(&*self.name).chain(self.rules.iter().filter_map(|(_, rule)| rule.name()));
        let texts = mistakes_in_texts(names, &labels, &self.templates);
        let prefetch = self.mistakes_in_prefetch();
        self.build_as(Shared::counted, texts, prefetch)
    }

    /// The same for a policy that the process builds once and keeps. The attribute has checked its texts.
    pub(crate) fn build_static(self) -> Result<Policy, Error> {
        let prefetch = self.mistakes_in_prefetch();
        self.build_as(Shared::leaked, Vec::new(), prefetch)
    }

    /// The same for a policy that another process has registered, whose texts it may have accepted. A file or an override may
    /// have given it rules of which that process takes nothing ahead.
    #[cfg(feature = "admin")]
    pub(crate) fn build_registered(self) -> Result<Policy, Error> {
        self.build_as(Shared::counted, Vec::new(), Vec::new())
    }

    /// Each rule with the subject that it counts, as far as a check by hand tells.
    fn rules_by_subject(&self) -> Vec<(CountedSubject<'_>, Rule)> {
        let subjects = self.rules.iter().map(|(label, _)| CountedSubject::labelled(label.as_deref()));
        subjects.zip(self.rules.iter().map(|(_, rule)| rule.clone())).collect()
    }

    fn mistakes_in_prefetch(&self) -> Vec<RuleError> {
        let mistakes = |ahead| validate_prefetch(ahead, &self.rules_by_subject(), 1).err();
        self.settings.prefetch.and_then(mistakes).unwrap_or_default()
    }

    fn build_as(
        self,
        share: fn(Inner) -> Shared<Inner>,
        texts: Vec<String>,
        prefetch: Vec<RuleError>,
    ) -> Result<Policy, Error> {
        // A check by hand may have any cost, any subjects, and be refunded on one of these.
        let own = || self.rules.iter().map(|(_, rule)| rule);
        let rules = validate_by_subject(&self.rules_by_subject(), Costs::Recounted).err();
        let ban = self.ban.and_then(|ban| validate_ban(&ban, own()).err());
        let deadline = self.settings.deadline.and_then(|deadline| validate_deadline(deadline).err());
        let warn_at = self.settings.warn_at.and_then(|share| validate_warn_at(share, own()).err());
        let mistakes: Vec<_> =
            rules.into_iter().chain(ban).flatten().chain(deadline).chain(warn_at).chain(prefetch).collect();
        if is_blank(&self.name) || !texts.is_empty() || !mistakes.is_empty() {
            return Err(Error::policy(&self.name, texts, &mistakes));
        }
        let inner = Inner::new(self.name, self.rules, self.ban, self.settings, Box::default());
        let policy = Policy { inner: share(Inner { templates: self.templates, ..inner }) };
        registry::register(&policy);
        Ok(policy)
    }
}

/// Adds rules on the subject of the call.
impl<R: Into<Rule>> Extend<R> for PolicyBuilder {
    fn extend<I: IntoIterator<Item = R>>(&mut self, rules: I) {
        self.rules.extend(rules.into_iter().map(|rule| (None, rule.into())));
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
        // What is settled beyond its cost empties the bucket, and counts for a day.
        assert!(rules([Rule::token_bucket(1, minute), Rule::sliding_window(9_000, 1_440 * minute)]).is_ok());
        // One of two subjects may be refunded alone.
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
