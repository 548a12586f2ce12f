//! Setting, clearing and looking up an override.

use serde_json::{Value, json};

use super::body::{self, NewOverride};
use super::error::{AdminError, made};
use super::query::Operated;
use super::query::Query;
use super::resource::Method;
use crate::admin::__shared::{json as documents, override_as_listed, remedy, rules_for};
use crate::admin::RegisteredPolicy;
use crate::limiter::{Override, OverrideBuilder};

/// A request about the override for a policy, or for a subject.
pub(super) struct OverrideRequest<'a> {
    pub(super) operated: &'a Operated,
    pub(super) policy: &'a str,
    /// The policy as it is listed.
    pub(super) found: Result<&'a RegisteredPolicy, AdminError>,
    pub(super) label: Option<&'a str>,
    pub(super) query: &'a Query,
}

impl<'a> OverrideRequest<'a> {
    pub(super) async fn run(self, method: Method, body: &[u8]) -> Result<Value, AdminError> {
        match method {
            Method::Get => {
                let found = self.listed()?.get().await?;
                Ok(json!({ "override": shown(found.as_ref()) }))
            }
            Method::Put => {
                let builder = self.listed()?;
                let NewOverride { rules, shadow, holds } = body::new_override(body)?;
                let new = match shadow {
                    Some(true) => builder.clone().shadow(),
                    Some(false) => builder.clone().enforced(),
                    None => builder.clone(),
                };
                let new = rules_for(new, rules.as_deref(), holds, "for").map_err(AdminError::refused)?;
                new.check()?;
                let old = builder.clone().get().await?;
                made(new.clone().set().await)?;
                // The override is in force even if it cannot be read now.
                let set = match builder.get().await {
                    Ok(set) => shown(set.as_ref()),
                    Err(_) => Some(documents::unread_override(&new)),
                };
                Ok(json!({ "set": set, "replaced": shown(old.as_ref()) }))
            }
            Method::Delete => {
                let (builder, mistake) = self.listed_or_whole()?;
                // An override that cannot be read, or is beyond the bound, is cleared unseen: that is its remedy.
                let old = builder.clone().get().await.ok().flatten();
                let is_cleared = made(builder.clone().clear().await)?;
                match mistake {
                    Some(mistake) if !is_cleared => Err(mistake),
                    _ => {
                        let unread = || documents::unread_override(&builder);
                        let cleared = is_cleared.then(|| shown(old.as_ref()).unwrap_or_else(unread));
                        Ok(json!({ "cleared": cleared }))
                    }
                }
            }
        }
    }

    /// Starts an override of the policy as it is listed.
    fn listed(self) -> Result<OverrideBuilder<'a>, AdminError> {
        let Self { operated, label, query, policy, .. } = self;
        let described = self.found?;
        let builder = label.into_iter().fold(described.override_rules(&operated.limiter), OverrideBuilder::label);
        let labels: Vec<_> = described.subjects().map(|subject| subject.label()).collect();
        if let Some(label) = label.filter(|label| !labels.contains(label)) {
            let meant = remedy("label", label, labels);
            return Err(AdminError::not_found(format!("policy `{policy}` has no rule on a subject `{label}`{meant}")));
        }
        if query.is_empty() {
            return Ok(builder);
        }
        let subjects = query.only_subject(operated, described, label)?;
        Ok(builder.subject(subjects.subject(label).unwrap_or(subjects.main())))
    }

    /// Returns the builder of the override, or of one that was set before its policy, label or key was removed or changed.
    /// The latter is a mistake unless there is such an override.
    fn listed_or_whole(self) -> Result<(OverrideBuilder<'a>, Option<AdminError>), AdminError> {
        let Self { operated, label, query, policy, .. } = self;
        let mistake = match self.listed() {
            Ok(builder) => return Ok((builder, None)),
            Err(mistake) => mistake,
        };
        let subject = query.whole_alone(label);
        if subject.is_none() && !query.is_empty() {
            return Err(mistake);
        }
        match override_as_listed(&operated.limiter, policy, label, subject) {
            Ok(builder) => Ok((builder, Some(mistake))),
            Err(_) => Err(mistake),
        }
    }
}

fn shown(found: Option<&Override>) -> Option<Value> {
    found.map(documents::override_in_force)
}
