//! The policies that the processes of a fleet have listed on their server.

use tallygate::admin::__shared::{AskedCounts, OpenPolicy, remedy};
use tallygate::admin::{Registered, RegisteredPolicy, Unreadable};
use tallygate::{Limiter, Rule, RuleId};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::printable;

#[derive(Debug)]
pub(crate) struct Fleet<'c> {
    pub(crate) limiter: Limiter,
    pub(crate) connection: &'c Connection,
    registered: Registered,
}

impl<'c> Fleet<'c> {
    /// Connects to the server, and reads the list.
    pub(crate) async fn connect(connection: &'c Connection) -> Result<Self, Failure> {
        Self::read(connection.connect().await?, connection).await
    }

    /// Reads the list by an existing connection.
    pub(crate) async fn read(limiter: Limiter, connection: &'c Connection) -> Result<Self, Failure> {
        let registered = limiter.registered_policies().await?;
        Ok(Self { limiter, connection, registered })
    }

    pub(crate) fn registered(&self) -> &Registered {
        &self.registered
    }

    pub(crate) fn find(&self, name: &str) -> Result<OpenPolicy<'_>, Failure> {
        self.find_with(name, &AskedCounts::default())
    }

    /// Returns the policy with counts in place of those that each call gives.
    pub(crate) fn find_with(&self, name: &str, asked: &AskedCounts) -> Result<OpenPolicy<'_>, Failure> {
        let described = self.registered.find(name).ok_or_else(|| self.unknown(name))?;
        Ok(OpenPolicy::new(described, asked)?)
    }

    /// Returns all policies, and the names of those that are left out, as this version cannot read them.
    pub(crate) fn all(&self) -> Result<(Vec<OpenPolicy<'_>>, Vec<&str>), Failure> {
        if self.registered.policies().is_empty() {
            return Err(Failure::usage(self.nothing_listed()));
        }
        let names = self.registered.policies().iter().map(RegisteredPolicy::name);
        let (read, refused): (Vec<_>, Vec<_>) =
            names.map(|name| (name, self.find(name).ok())).partition(|(_, read)| read.is_some());
        let unreadable = self.registered.unreadable().iter().map(Unreadable::name);
        let left_out = refused.into_iter().map(|(name, _)| name).chain(unreadable).collect();
        Ok((read.into_iter().filter_map(|(_, read)| read).collect(), left_out))
    }

    /// Returns a note about the policies that are left out.
    pub(crate) fn left_out(names: &[&str]) -> String {
        if names.is_empty() {
            String::new()
        } else {
            let names: Vec<_> = names.iter().map(|name| printable(name).replace('\n', "\\n")).collect();
            let names = names.join(", ");
            format!("left out, as listed by another version: {names}; use the `tallygate` of that version\n")
        }
    }

    pub(crate) fn unknown(&self, name: &str) -> Failure {
        if let Some(unreadable) = self.registered.find_unreadable(name) {
            return Failure::refused(unreadable.to_string());
        }
        let known = self.registered.policies().iter().map(RegisteredPolicy::name);
        if self.registered.policies().is_empty() {
            return Failure::usage(self.nothing_listed());
        }
        Failure::usage(format!("no process has used a policy `{name}` within a week{}", remedy("policy", name, known)))
    }

    pub(crate) fn unknown_label(described: &RegisteredPolicy, label: &str) -> Failure {
        let known: Vec<_> = described.subjects().map(|subject| subject.label()).collect();
        let name = described.name();
        Failure::usage(format!(
            "the policy `{name}` has no rule on a subject `{label}`{}",
            remedy("label", label, known)
        ))
    }

    pub(crate) fn nothing_listed(&self) -> String {
        format!(
            "no policy is listed under the prefix `{}`: no process has used one within a week, their version keeps no list, \
             or `--prefix` is another one",
            self.connection.prefix
        )
    }
}

/// Returns the rule that an option names: by its position, or else by its name.
pub(crate) fn rule_id(text: &str) -> RuleId {
    text.parse().map_or_else(|_| RuleId::Name(text.to_owned()), RuleId::Position)
}

/// Whether the id is that of the rule at this position.
pub(crate) fn has_id(rule: &Rule, position: usize, id: &RuleId) -> bool {
    match id {
        RuleId::Name(name) => rule.name() == Some(name),
        RuleId::Position(meant) => *meant == position,
    }
}
