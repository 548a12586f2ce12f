//! The builder of policies.

mod build;

use std::borrow::Cow;
use std::time::Duration;

use tallygate_rules::{Ban, EffectiveRule, OnOutage, Rule};

use crate::policy::{Policy, PolicyInner, PolicySettings, Templates};

/// Builds a [`Policy`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PolicyBuilder {
    name: Cow<'static, str>,
    /// The rules, each with the label of its subject; `None` for the main one.
    rules: Vec<(Option<String>, Rule)>,
    ban: Option<Ban>,
    settings: PolicySettings,
    /// The label of the subject that can be paused; `None` for the main one.
    paused: Option<String>,
    templates: Templates,
}

impl Policy {
    /// Starts a policy with that name. Policies with one name share their tallies.
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PolicyBuilder {
        PolicyBuilder {
            name: name.into(),
            rules: Vec::new(),
            ban: None,
            settings: PolicySettings::NONE,
            paused: None,
            templates: Templates::default(),
        }
    }

    /// Starts a policy with the name, rules and settings of this one: for example, to add to a policy of a file what
    /// only the program knows.
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
        let PolicyInner { name, ban, settings, .. } = &*self.inner;
        let rules = self.effective_rules().into_iter().map(|EffectiveRule { label, rule, .. }| (label, rule));
        PolicyBuilder {
            name: name.clone(),
            rules: rules.collect(),
            ban: *ban,
            settings: *settings,
            paused: self.paused_label().map(str::to_owned),
            templates: self.templates().clone(),
        }
    }
}

impl PolicyBuilder {
    /// Adds a rule on the main subject of the call.
    pub fn rule(mut self, rule: impl Into<Rule>) -> Self {
        self.rules.push((None, rule.into()));
        self
    }

    /// Adds rules on the main subject of the call.
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
    pub(crate) fn rule_of(mut self, label: Option<String>, rule: Rule) -> Self {
        self.rules.push((label, rule));
        self
    }

    /// Replaces all settings.
    pub(crate) fn with_settings(mut self, settings: PolicySettings) -> Self {
        self.settings = settings;
        self
    }

    /// Bans a subject that is denied too often: see [`Ban`].
    pub fn ban(mut self, ban: Ban) -> Self {
        self.ban = Some(ban);
        self
    }

    /// Sets how calls are decided while Redis is away: see [`OnOutage`]. Without it, the
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

    /// Sets the longest time that a decision takes: longer than zero, and at most an hour. [`build`](Self::build) refuses
    /// others. Without it, the [limiter's](crate::LimiterBuilder::deadline) setting holds.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = Some(deadline);
        self
    }

    /// Sets the share of a limit, more than 0 and less than 1, from which a subject is near it. [`build`](Self::build)
    /// refuses others, and a policy in which one call uses up each rule. An admitted call then has a
    /// [warning](crate::Permit::warning). The call with which a subject comes near the limit of a rule is counted in
    /// the metrics and passed to [`LimiterBuilder::on_warning`](crate::LimiterBuilder::on_warning).
    ///
    /// A subject is near the limit of a rule when it has used that share of its `count`, or of a bucket's capacity.
    /// Rules against duplicates, and those that one call uses up, warn of nothing. Neither does use beyond the cost for
    /// which a call is [settled](crate::Permit::settle), so reserve what calls usually need. Each call then asks for a
    /// [report](crate::Check::report), which costs the store more.
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

    /// Puts the policy in shadow: its calls are decided, counted and reported to the log and the metrics, but none is
    /// denied, even if the store does not answer. So a limit can be tried before it is enforced.
    ///
    /// A [peek](crate::Check::peek) shows the decision. A file or an [override](crate::OverrideBuilder::enforced) may
    /// enforce the policy, or put another one in shadow.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    /// let tried = Policy::builder("tried").rule(Rule::sliding_window(1, Duration::from_secs(60))).shadow().build()?;
    /// for _ in 0..3 {
    ///     assert!(limiter.check(&tried, &alice).await?.is_allowed());
    /// }
    /// assert!(!limiter.peek(&tried, &alice).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn shadow(mut self) -> Self {
        self.settings.shadow = Some(true);
        self
    }

    /// Lets the main subject be paused: closed until a time because the other side said so, as a partner does by
    /// `Retry-After`. [`Permit::pause`](crate::Permit::pause) and [`Check::pause`](crate::Check::pause) pause it, for an hour
    /// at most, or for the [longest pause](Self::longest_pause).
    ///
    /// All calls of a paused subject are denied as [`Paused`](crate::RejectionKind::Paused), in all processes and in all
    /// units; no rule counts them. After that, for as long again, one call at a time is admitted until one has
    /// [succeeded](crate::Permit::succeeded); the others are denied as `Paused` meanwhile.
    ///
    /// In Redis, each call asks for the pause in the same round trip. The tallies of such a policy have other keys, so that
    /// adding this begins new counts once.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, RejectionKind, Rule, Subject};
    ///
    /// let (limiter, partner) = (Limiter::in_memory(), Subject::of("partner"));
    /// let calls = Rule::sliding_window(50, Duration::from_secs(1));
    /// let policy = Policy::builder("partner").rule(calls).pausable().build()?;
    ///
    /// let permit = limiter.check(&policy, &partner).await?.into_result()?;
    /// // The partner answers 429 with `Retry-After: 30`.
    /// permit.pause(Duration::from_secs(30)).await?;
    /// let denial = limiter.check(&policy, &partner).await?.into_result().unwrap_err();
    /// assert_eq!(denial.kind(), RejectionKind::Paused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pausable(mut self) -> Self {
        self.paused = None;
        self.settings = self.settings.pausable();
        self
    }

    /// Lets the subject with that label be [paused](Self::pausable), in place of the main one: the host of a partner, if the
    /// main subject is an account there. All calls on a paused host are denied, whatever their account.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let second = Duration::from_secs(1);
    /// let policy = Policy::builder("partner")
    ///     .rule(Rule::sliding_window(50, second))
    ///     .rule_on("host", Rule::sliding_window(500, second))
    ///     .pausable_on("host")
    ///     .build()?;
    /// let (limiter, host) = (Limiter::in_memory(), Subject::of("partner.example"));
    ///
    /// let call = async |account: &str| limiter.check(&policy, &Subject::of(account)).subject("host", &host).await;
    /// call("one").await?.into_result()?.pause(Duration::from_secs(30)).await?;
    /// assert!(!call("other").await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn pausable_on(self, label: impl Into<String>) -> Self {
        Self { paused: Some(label.into()), ..self.pausable() }
    }

    /// Lets the main subject, or [another one](Self::pausable_on), be [paused](Self::pausable) for at most that long from
    /// when it is said. A longer pause lasts as long as the longest. [`build`](Self::build) refuses zero, more than 3,660
    /// days, and this beside [`prefetch`](Self::prefetch).
    pub fn longest_pause(mut self, longest: Duration) -> Self {
        self.settings.longest_pause = Some(longest);
        self
    }

    /// Sets the template of the main subject, like the `key` of the attribute: `sms:{phone}`.
    ///
    /// It is for people and tools alone, and does not choose what is counted: [the list of
    /// policies](crate::guide::production#the-list-of-policies) in Redis shows it, and the command line makes subjects
    /// with it. The policies of annotated functions and of files have it already.
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

    /// Sets the template of the subject with that label: see [`key`](Self::key).
    pub fn key_on(mut self, label: impl Into<String>, key: impl Into<Cow<'static, str>>) -> Self {
        self.templates.set(Some(label.into().into()), key.into());
        self
    }

    /// Takes calls ahead from Redis, for at most that time, while a process is busy with a subject. The process then
    /// decides them by itself. See the guide about [calls that are taken ahead](crate::guide::prefetch).
    ///
    /// The policy stays exact: in any window of length `per`, all processes together admit at most `count`. For that,
    /// Redis checks each window of length `per` as one of `per + ahead`, so a subject at its limit gets
    /// `per / (per + ahead)` of it. In memory, `prefetch` changes nothing.
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
}

/// Adds rules on the main subject of the call.
impl<R: Into<Rule>> Extend<R> for PolicyBuilder {
    fn extend<I: IntoIterator<Item = R>>(&mut self, rules: I) {
        self.rules.extend(rules.into_iter().map(|rule| (None, rule.into())));
    }
}
