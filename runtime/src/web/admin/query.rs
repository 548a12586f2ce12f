//! The limiter that the routes operate on, and the subjects that a query names.

use percent_encoding::percent_decode_str;
use tallygate_rules::CALLS;

use super::error::AdminError;
use crate::admin::__shared::{AskedCounts, remedy};
use crate::admin::{Placeholder, RegisteredPolicy, Rendering, Subjects};
use crate::limiter::Limiter;

/// The limiter that the routes operate on, and whether its programs may have a secret.
#[derive(Clone)]
pub(super) struct Operated {
    pub(super) limiter: Limiter,
    /// Whether it is confirmed that the programs have no secret.
    pub(super) has_no_secret: bool,
}

/// The parameter of a whole subject, and the prefix of one of a label. No placeholder has a colon.
const WHOLE: &str = "subject";
const WHOLE_OF_LABEL: &str = "subject:";

/// The parameters of the counts that are asked about.
const PLAN: &str = "plan";
const PLAN_OF_RULE: &str = "plan:";
const COUNT: &str = "count";
const COUNT_OF_RULE: &str = "count:";

/// The parameters of what the call costs.
const COST: &str = "cost";
const COST_OF_UNIT: &str = "cost:";

/// The parameters of a query, each once.
#[derive(Clone, Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn read(query: Option<&str>) -> Result<Self, AdminError> {
        let mut read: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                let name = decoded(pair)?;
                return Err(AdminError::refused(format!("`{name}` has no value; write `{name}=…`")));
            };
            let (name, value) = (decoded(name)?, decoded(value)?);
            if read.iter().any(|(known, _)| *known == name) {
                return Err(AdminError::refused(format!("`{name}` is given twice; give it once")));
            }
            read.push((name, value));
        }
        Ok(Self(read))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of the only parameter that there may be.
    pub(super) fn only(&self, name: &str) -> Result<Option<&str>, AdminError> {
        match self.0.iter().find(|(known, _)| known != name) {
            Some((other, _)) => {
                Err(AdminError::refused(format!("`{other}` is unknown{}", remedy("parameter", other, [name]))))
            }
            None => Ok(self.0.first().map(|(_, value)| value.as_str())),
        }
    }

    /// Refuses any parameter.
    pub(super) fn none(&self) -> Result<(), AdminError> {
        match self.0.first() {
            Some((name, _)) => Err(AdminError::refused(format!("`{name}` is unknown; this path takes no parameters"))),
            None => Ok(()),
        }
    }

    /// Returns the whole subject of that label, or the main one, if the query has nothing else.
    pub(super) fn whole_alone(&self, label: Option<&str>) -> Option<&str> {
        let [(name, value)] = &self.0[..] else { return None };
        let is_it = name == WHOLE || label.is_some() && name.strip_prefix(WHOLE_OF_LABEL) == label;
        is_it.then_some(value)
    }

    /// Takes out the counts that are asked about. A value that a key of the policy shows goes before them.
    pub(super) fn take_counts(&mut self, policy: &RegisteredPolicy) -> Result<AskedCounts, AdminError> {
        let mut asked = AskedCounts { before_rule: COUNT_OF_RULE, ..AskedCounts::default() };
        for (name, plan) in self.take(policy, PLAN, PLAN_OF_RULE)? {
            asked.plans.push((name.strip_prefix(PLAN_OF_RULE).map(str::to_owned), plan));
        }
        for (name, count) in self.take(policy, COUNT, COUNT_OF_RULE)? {
            asked.counts.push((name.strip_prefix(COUNT_OF_RULE).map(str::to_owned), number(&name, &count)?));
        }
        Ok(asked)
    }

    /// Takes out what the call costs, by units. A value that a key of the policy shows goes before it.
    pub(super) fn take_costs(&mut self, policy: &RegisteredPolicy) -> Result<Vec<(String, u64)>, AdminError> {
        let taken = self.take(policy, COST, COST_OF_UNIT)?;
        let cost = |(name, cost): &(String, String)| {
            Ok((name.strip_prefix(COST_OF_UNIT).unwrap_or(CALLS).to_owned(), number(name, cost)?))
        };
        taken.iter().map(cost).collect()
    }

    /// Takes out the parameters of a name, or with its prefix, unless a key of the policy shows such a value.
    fn take(
        &mut self,
        policy: &RegisteredPolicy,
        name: &str,
        prefix: &str,
    ) -> Result<Vec<(String, String)>, AdminError> {
        let placeholders = policy.placeholders()?;
        let is_value = |name: &str| placeholders.iter().map(Placeholder::name).any(|known| known == name);
        let is_meant = |given: &str| given == name || given.starts_with(prefix);
        Ok(self.0.extract_if(.., |(given, _)| is_meant(given) && !is_value(given)).collect())
    }

    /// Returns the subjects of a call as far as they are named, and the labels of the others.
    pub(super) fn subjects_partly(
        &self,
        operated: &Operated,
        policy: &RegisteredPolicy,
    ) -> Result<(Subjects, Vec<Option<String>>), AdminError> {
        Ok(self.rendering(operated, policy, None)?.build_partly()?)
    }

    pub(super) fn subjects(&self, operated: &Operated, policy: &RegisteredPolicy) -> Result<Subjects, AdminError> {
        Ok(self.rendering(operated, policy, None)?.build()?)
    }

    /// Returns the subject of that label, or the main one. The other subjects of the call are placeholders.
    pub(super) fn only_subject(
        &self,
        operated: &Operated,
        policy: &RegisteredPolicy,
        label: Option<&str>,
    ) -> Result<Subjects, AdminError> {
        Ok(self.rendering(operated, policy, label)?.only(label).build()?)
    }

    /// Starts making subjects. `default` is the label of a whole subject without one.
    fn rendering<'a>(
        &self,
        operated: &'a Operated,
        policy: &'a RegisteredPolicy,
        default: Option<&str>,
    ) -> Result<Rendering<'a>, AdminError> {
        let placeholders = policy.placeholders()?;
        let is_value = |name: &str| placeholders.iter().map(Placeholder::name).any(|known| known == name);
        let rendering = policy.render(&operated.limiter);
        // A process that has the policy makes subjects as its own calls do, with a secret or without one.
        let is_own = || Limiter::policy(policy.name()).is_some();
        let rendering = if operated.has_no_secret || is_own() { rendering.without_secret() } else { rendering };
        let given = self.0.iter().fold(rendering, |rendering, (name, value)| {
            let label = name.strip_prefix(WHOLE_OF_LABEL).or(default.filter(|_| name == WHOLE));
            match label {
                _ if is_value(name) => rendering.named(name, value),
                Some(label) => rendering.written_subject(label, value),
                None if name == WHOLE => rendering.written_main(value),
                None => rendering.named(name, value),
            }
        });
        Ok(given)
    }
}

fn number(name: &str, value: &str) -> Result<u64, AdminError> {
    value.parse().map_err(|_| AdminError::refused(format!("`{name}` must be a whole number, like `{name}=100`")))
}

/// Decodes a name or a value as forms encode them.
fn decoded(text: &str) -> Result<String, AdminError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    decoded.map(Into::into).map_err(|_| AdminError::malformed("the query is not percent-encoded UTF-8"))
}
