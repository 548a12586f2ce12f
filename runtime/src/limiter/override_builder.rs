//! Setting, clearing, looking up and listing overrides.

use std::time::Duration;

use tallygate_rules::{EffectiveRule, MAX_PER, Rule, RuleId};

use super::Limiter;
use super::overrides::{
    Override, OverrideContent, OverrideTarget, Unknown, WrittenOverride, check, content, read_written,
};
use crate::error::Error;
use crate::micros;
use crate::observe::opaque_debug;
use crate::subject::Subject;

/// An override that is being set, cleared or looked up: see [`Limiter::override_policy`].
#[derive(Clone)]
#[must_use = "nothing happens until `set`, `clear` or `get` is awaited"]
pub struct OverrideBuilder<'a> {
    limiter: &'a Limiter,
    pub(crate) policy: String,
    pub(crate) label: Option<String>,
    pub(crate) subject: Option<Subject>,
    written: WrittenOverride,
    pub(crate) expires_in: Option<Duration>,
    /// The mistake in the given text.
    mistake: Option<String>,
    unknown: Unknown,
    /// The policy's own rules, if they may differ from those that this process knows.
    own: Option<Vec<EffectiveRule>>,
}

impl Limiter {
    /// Starts an override: rules that replace the rules of all policies with this name.
    ///
    /// An override is for one subject of the calls: the main one, or [another](OverrideBuilder::label). It is for all
    /// values of that subject, or for [one value](OverrideBuilder::subject), which takes precedence. Its rules replace
    /// [all rules](OverrideBuilder::rules) on that subject, duplicate rules included, or [single
    /// ones](OverrideBuilder::rule). Rules on other subjects and the ban stay in force.
    ///
    /// If tallies are in Redis, the override is stored there: every process adopts it within about a second, or two
    /// when idle, and it survives restarts. In memory it holds for this limiter.
    ///
    /// Counts are kept as long as the layout of the tallies is the same: a new `count` keeps them; other windows or
    /// algorithms start new tallies. A count of 0 closes the limit: no call is admitted.
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
    /// let day = Duration::from_secs(86_400);
    /// let policy = Policy::builder("sms.send").rule(Rule::sliding_window(1, day).named("daily")).build()?;
    ///
    /// // All rules, for every subject.
    /// limiter.override_policy("sms.send").rules(["0 per 1h".parse::<Rule>()?]).set().await?;
    /// assert!(!limiter.check(&policy, &Subject::of("138")).await?.is_allowed());
    ///
    /// // One rule, for one subject, for two hours.
    /// let vip = Subject::of("139");
    /// limiter
    ///     .override_policy("sms.send")
    ///     .subject(&vip)
    ///     .rule("daily", Rule::sliding_window(100, day))
    ///     .expires_in(Duration::from_secs(7_200))
    ///     .set()
    ///     .await?;
    /// assert!(limiter.check(&policy, &vip).await?.is_allowed());
    ///
    /// assert_eq!(limiter.overrides().await?.len(), 2);
    /// assert!(limiter.override_policy("sms.send").clear().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn override_policy(&self, name: impl Into<String>) -> OverrideBuilder<'_> {
        OverrideBuilder {
            limiter: self,
            policy: name.into(),
            label: None,
            subject: None,
            written: WrittenOverride::default(),
            expires_in: None,
            mistake: None,
            unknown: Unknown::Refuse,
            own: None,
        }
    }

    /// Returns all overrides that are in force, ordered by policy, label and subject.
    ///
    /// An override that is stored in Redis but cannot be read is not in force; the log has a warning about it.
    ///
    /// # Errors
    ///
    /// Redis does not answer, or there are more overrides than a process adopts.
    pub async fn overrides(&self) -> Result<Vec<Override>, Error> {
        self.core.overrides.list().await
    }
}

impl OverrideBuilder<'_> {
    /// Applies the override to the rules on another subject of the calls, by the label that
    /// [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) gave it.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Limits the override to one subject. There, it replaces the override for all subjects as a whole.
    ///
    /// Give the subject for which the calls are checked: a `key` of `"user:{id}"` makes subjects like
    /// `Subject::of("user").and(7)`.
    pub fn subject(mut self, subject: &Subject) -> Self {
        self.subject = Some(subject.clone());
        self
    }

    /// Adds rules that together replace all rules on the subject that count one of their units.
    ///
    /// A rule with the algorithm and the window of one of the policy's rules gets its name and its message.
    pub fn rules(mut self, rules: impl IntoIterator<Item: Into<Rule>>) -> Self {
        self.written.rules.extend(rules.into_iter().map(|rule| (None, rule.into())));
        self
    }

    /// Adds a rule that replaces a single one of the policy, given by its name or by its position. It gets the name and
    /// the message of the replaced rule. The policy's other rules stay in force.
    ///
    /// Unless the override is for [another subject](Self::label) or for [one value](Self::subject), the rule may count any
    /// subject of the calls.
    pub fn rule(mut self, id: impl Into<RuleId>, rule: impl Into<Rule>) -> Self {
        self.written.rules.push((Some(id.into()), rule.into()));
        self
    }

    /// Puts the policy in shadow: its calls are decided, counted and reported, and none is denied, as with
    /// [`PolicyBuilder::shadow`](crate::PolicyBuilder::shadow). This holds for all calls of the policy, even for
    /// subjects with an override of their own. The policy's rules stay as they are, unless the override has rules.
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
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    /// assert!(limiter.check(&policy, &alice).await?.is_allowed());
    /// assert!(!limiter.check(&policy, &alice).await?.is_allowed());
    ///
    /// limiter.override_policy("export").shadow().set().await?;
    /// assert!(limiter.check(&policy, &alice).await?.is_allowed());
    /// limiter.override_policy("export").clear().await?;
    /// assert!(!limiter.check(&policy, &alice).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn shadow(mut self) -> Self {
        self.written.shadow = Some(true);
        self
    }

    /// Enforces a policy that the program or a file puts in shadow.
    pub fn enforced(mut self) -> Self {
        self.written.shadow = Some(false);
        self
    }

    /// Adds rules and a duration, as text: `100 per 1h, 1000 per 1d`, `daily = 500 per 1d for 2h`.
    ///
    /// Rules are written as [`Rule`] reads them and separated by commas. Before `=` comes the name or the position of
    /// the replaced rule; quote a name of more than one word. `shadow` and `enforced`, alone or among the rules, do
    /// what [`shadow`](Self::shadow) and [`enforced`](Self::enforced) do. [`set`](Self::set) reports mistakes.
    pub fn text(mut self, text: &str) -> Self {
        match read_written(text) {
            Ok((WrittenOverride { rules, shadow }, expires_in)) => {
                self.written.rules.extend(rules);
                self.written.shadow = shadow.or(self.written.shadow);
                self.expires_in = expires_in.or(self.expires_in);
            }
            Err(mistake) => self.mistake = Some(mistake),
        }
        self
    }

    /// Ends the override by itself after `time`, at the same moment in every process: 3,660 days at most.
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.expires_in = Some(time);
        self
    }

    /// Stores the override even if this process does not know the policy, the subject's label or a rule.
    ///
    /// A process that knows policies refuses names that none of them has, as they are probably misspelt. A process that
    /// knows no policy, like an operator's tool, refuses none. If several policies have one name, the one that was
    /// built last counts.
    pub fn allow_unknown(mut self) -> Self {
        self.unknown = Unknown::Allow;
        self
    }

    /// Checks the override by these rules of the policy, whatever this process knows.
    #[cfg(feature = "admin")]
    pub(crate) fn in_place_of(mut self, own: Vec<EffectiveRule>) -> Self {
        self.own = Some(own);
        self
    }

    /// Sets the override. It replaces the one for the same policy and subject.
    ///
    /// # Errors
    ///
    /// * A mistake in the rules that the attribute would refuse when compiling, except for a count of 0.
    /// * A name that is unknown, unless that is [allowed](Self::allow_unknown).
    /// * There are 10,000 overrides already.
    /// * More overrides than that were stored without this library. The override is stored, but not in force.
    /// * Redis does not answer. The override may or may not be in force.
    pub async fn set(self) -> Result<(), Error> {
        let (target, content, holds_us) = self.checked()?;
        self.limiter.core.overrides.set(target, content, holds_us).await
    }

    /// Finds the mistakes that [`set`](Self::set) would find, and stores nothing: for tools that ask before a change.
    ///
    /// # Errors
    ///
    /// There is a mistake in the rules, or a name is unknown, as for [`set`](Self::set).
    pub fn check(&self) -> Result<(), Error> {
        self.checked().map(drop)
    }

    /// Returns the override and for how many microseconds it holds, if nothing is wrong with it.
    fn checked(&self) -> Result<(OverrideTarget, OverrideContent, Option<u64>), Error> {
        let refuse = |mistake: &str| self.refuse(mistake);
        if let Some(mistake) = &self.mistake {
            return Err(refuse(mistake));
        }
        let holds_us = self.expires_in.map(holds_us).transpose().map_err(refuse)?;
        let content = content(self.written.clone()).map_err(|mistake| refuse(&mistake))?;
        let target = self.target()?;
        check(&target, &content, self.own.as_deref(), self.unknown)?;
        Ok((target, content, holds_us))
    }

    fn refuse(&self, mistake: &str) -> Error {
        Error::new(format!("policy `{}`: {mistake}", self.policy))
    }

    /// Removes the override, so that the policies decide by their own rules again. Returns whether there was one.
    ///
    /// Overrides for single subjects stay: clear each by itself.
    ///
    /// # Errors
    ///
    /// * There are still more than 10,000 overrides, which were stored without this library. The override is cleared,
    ///   but no process adopts that until others are cleared, too.
    /// * Redis does not answer. The override may or may not be in force.
    pub async fn clear(self) -> Result<bool, Error> {
        self.limiter.core.overrides.clear(&self.target()?).await
    }

    /// Returns the override that is in force for exactly this policy and subject.
    ///
    /// # Errors
    ///
    /// Fails as [`Limiter::overrides`] does.
    pub async fn get(self) -> Result<Option<Override>, Error> {
        self.limiter.core.overrides.get(&self.target()?).await
    }

    fn target(&self) -> Result<OverrideTarget, Error> {
        if let Some(mistake) = self.subject.as_ref().and_then(Subject::mistake) {
            return Err(Error::new(format!("`subject`: {mistake}")));
        }
        Ok(OverrideTarget::new(self.policy.clone(), self.label.clone(), self.subject.clone()))
    }
}

/// Returns how many whole microseconds an override holds, rounded up.
fn holds_us(time: Duration) -> Result<u64, &'static str> {
    if time.is_zero() {
        return Err("an override must hold for longer than zero, like `for 2h`");
    }
    if time > MAX_PER {
        return Err("an override with an end holds for 3660 days at most; without one it holds until it is cleared");
    }
    Ok(micros::rounded_up(time))
}

// Leaves out the subject, which may be personal.
opaque_debug!(OverrideBuilder<'_> { policy, label, written, expires_in });
