//! The file as a whole.

use std::sync::Arc;

use toml::de::DeTable;

use super::lines::Lines;
use super::policies::{Inner, Policies};
use super::policy_table::{self, FilePolicy};
use super::table::{Table, entries};
use crate::error::{ConfigError, Place};

impl Policies {
    /// Reads the policies of a file in TOML.
    ///
    /// # Errors
    ///
    /// All mistakes in it, with their lines and columns: those of the syntax, else those that the attribute refuses, in the
    /// same words. What shows only beside the policies of the program is found by [`Limiter::apply`](crate::Limiter::apply).
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    ///
    /// let text = r#"
    /// [policy."sms.send"]
    /// rules = ["1 per 60s", { count = 0, per = "1d", nam = "daily" }]
    /// "#;
    /// let error = Policies::from_toml(text).unwrap_err();
    /// let mistakes: Vec<_> = error.mistakes().iter().map(ToString::to_string).collect();
    /// assert_eq!(
    ///     mistakes,
    ///     [
    ///         "line 3, column 33: `count` must be at least 1, like `count = 10`",
    ///         "line 3, column 48: unknown argument `nam`; did you mean `name`?",
    ///     ]
    /// );
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        read(text).map(|inner| Self { inner: Arc::new(inner) })
    }
}

/// Reads a file.
fn read(text: &str) -> Result<Inner, ConfigError> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    let mut lines = Lines::new(text);
    let mut inner = Inner {
        names: Vec::new(),
        changes: Vec::new(),
        #[cfg(feature = "web")]
        requests: Vec::new(),
    };
    for mistake in &syntax {
        let place = lines.place(&mistake.span().unwrap_or_default());
        lines.report(place, mistake.message());
    }
    // Behind a mistake in the syntax, others may only seem to be some.
    if syntax.is_empty() {
        read_policies(root.get_ref(), &mut inner, &mut lines);
    }
    lines.finish(inner)
}

fn read_policies(root: &DeTable<'_>, inner: &mut Inner, lines: &mut Lines<'_>) {
    let mut root = Table::new(root, Place { line: 1, column: 1 }, lines);
    if let Some(policies) = root.take("policy") {
        let message = "`policy` must be a table of policies, like `[policy.\"sms.send\"]`";
        let table = lines.ok_or_report(policies.value.place, policies.value.value.as_table().ok_or(message));
        for policy in table.map(|table| entries(table, lines)).unwrap_or_default() {
            inner.names.push(policy.name.value.to_owned());
            match policy_table::read(policy, lines) {
                Some(FilePolicy::Change(change)) => inner.changes.push(Arc::new(change)),
                #[cfg(feature = "web")]
                Some(FilePolicy::Requests(limit)) => inner.requests.push(limit),
                None => {}
            }
        }
    }
    root.finish(lines);
    #[cfg(feature = "web")]
    check_reached(&inner.requests, lines);
}

/// Reports policies whose requests an earlier one limits, all of them.
#[cfg(feature = "web")]
fn check_reached(limits: &[super::RequestLimit], lines: &mut Lines<'_>) {
    for (position, limit) in limits.iter().enumerate() {
        let earlier = limits.iter().take(position).find(|earlier| earlier.requests.cover(&limit.requests));
        if let Some(earlier) = earlier {
            let message = format!(
                "the policy `{}` limits all these requests, as it stands first; write this one before it, or remove it",
                earlier.policy.name()
            );
            lines.report(limit.requests.place, message);
        }
    }
}
