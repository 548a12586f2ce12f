//! Building a policy, and refusing one that is mistaken.

use std::borrow::Cow;

use tallygate_rules::{Ban, Costs, Rule, validate_ban, validate_by_subject};

use crate::error::Error;
use crate::policy::{Policy, registry};

/// Builds a [`Policy`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PolicyBuilder {
    name: Cow<'static, str>,
    /// Each with the label of the subject it counts, unless that is the main one.
    rules: Vec<(Option<String>, Rule)>,
    ban: Option<Ban>,
}

impl Policy {
    /// Starts a policy of that name. Policies of one name share their tallies.
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PolicyBuilder {
        PolicyBuilder { name: name.into(), rules: Vec::new(), ban: None }
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

    /// Bans a subject that is denied too often: see [`Ban`].
    pub fn ban(mut self, ban: Ban) -> Self {
        self.ban = Some(ban);
        self
    }

    /// Validates the policy, and makes it known to [`Limiter::policy`](crate::Limiter::policy).
    ///
    /// # Errors
    ///
    /// An empty name, or a mistake in the rules that the attribute refuses at compile time. The error lists all of them:
    /// see [`Error::rule_errors`].
    pub fn build(self) -> Result<Policy, Error> {
        // A check by hand may have any cost.
        let rules = validate_by_subject(&self.rules, Costs::Any).err();
        let ban = self.ban.and_then(|ban| validate_ban(&ban, self.rules.iter().map(|(_, rule)| rule)).err());
        let mistakes: Vec<_> = rules.into_iter().chain(ban).flatten().collect();
        if self.name.is_empty() || !mistakes.is_empty() {
            return Err(Error::rules(&self.name, &mistakes));
        }
        let policy = Policy::new(self.name, self.rules, self.ban, Box::default());
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
}
