//! The operations of the paths and methods.

use std::future::Future;
use std::slice;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::body::{self, NewOverride};
use super::error::{AdminError, made};
use super::query::{Operated, Query};
use super::resource::{Method, Resource};
use crate::admin::__shared::json::{self as documents, ms};
use crate::admin::__shared::{AskedCounts, OpenPolicy, Peeked, held_pause, override_as_listed, remedy, rules_for};
use crate::admin::{Registered, RegisteredPolicy, Subjects};
use crate::context;
use crate::error::BackendError;
use crate::limiter::{Limiter, Override, OverrideBuilder};
use crate::observe::log;
use crate::subject::Subject;
use crate::system::TokioInstant;

/// A page of bans ends with the step that reaches one of these.
const PAGE_BANS: usize = 100;
const PAGE_TIME: Duration = Duration::from_secs(1);

/// Carries out a request, and returns the document that answers it.
pub(super) async fn run(
    operated: &Operated,
    method: Method,
    resource: &Resource,
    query: &Query,
    body: impl Future<Output = Result<Bytes, AdminError>>,
) -> Result<Value, AdminError> {
    let limiter = &operated.limiter;
    // The body is read first, because a slow sender may take long.
    let body = if method == Method::Put { body.await? } else { Bytes::new() };
    let policy = match resource {
        Resource::Overrides => {
            query.none()?;
            let overrides: Vec<_> = limiter.overrides().await?.iter().map(documents::override_in_force).collect();
            return Ok(json!({ "overrides": overrides }));
        }
        Resource::Policies => {
            query.none()?;
            let registered = limiter.operated_policies().await?;
            return Ok(documents::policies(&registered, &limiter.overrides().await?));
        }
        Resource::Policy(policy)
        | Resource::Subject(policy)
        | Resource::Subjects(policy)
        | Resource::Ban(policy)
        | Resource::Bans(policy)
        | Resource::Pause(policy)
        | Resource::Override { policy, .. } => policy,
    };
    let registered = limiter.operated_policies().await?;
    let found = find(limiter, &registered, policy);
    if let Resource::Override { label, .. } = resource {
        return OverrideRequest { operated, policy, found, label: label.as_deref(), query }.run(method, &body).await;
    }
    let described = found?;
    let mut query = query.clone();
    let (asked, costs) = match (resource, method) {
        (Resource::Subject(_), Method::Get) => (query.take_counts(described)?, query.take_costs(described)?),
        _ => (AskedCounts::default(), Vec::new()),
    };
    let listed = OpenPolicy::new(described, &asked)?;
    let request = PolicyRequest { operated, listed: &listed, query: &query };
    match (resource, method) {
        (Resource::Subject(_), Method::Get) => request.peek(costs).await,
        (Resource::Subject(_), _) => request.reset().await,
        (Resource::Subjects(_), _) => request.reset_all().await,
        (Resource::Ban(_), Method::Put) => request.ban(&body).await,
        (Resource::Ban(_), _) => request.unban().await,
        (Resource::Bans(_), _) => request.bans().await,
        (Resource::Pause(_), Method::Put) => request.pause(&body).await,
        (Resource::Pause(_), _) => request.resume().await,
        _ => {
            query.none()?;
            Ok(documents::policy(described, &limiter.overrides().await?))
        }
    }
}

fn find<'r>(limiter: &Limiter, registered: &'r Registered, name: &str) -> Result<&'r RegisteredPolicy, AdminError> {
    if let Some(other) = registered.find_unreadable(name) {
        return Err(AdminError::refused(other.to_string()));
    }
    registered.find(name).ok_or_else(|| {
        let meant = remedy("policy", name, registered.policies().iter().map(RegisteredPolicy::name));
        AdminError::not_found(match limiter.store().policies() {
            Some(_) => format!("no process has used a policy `{name}` within a week{meant}"),
            None => format!("this process knows no policy `{name}`{meant}"),
        })
    })
}

struct PolicyRequest<'a> {
    operated: &'a Operated,
    listed: &'a OpenPolicy<'a>,
    query: &'a Query,
}

impl PolicyRequest<'_> {
    fn name(&self) -> &str {
        self.listed.described.name()
    }

    async fn peek(&self, costs: Vec<(String, u64)>) -> Result<Value, AdminError> {
        self.listed.check_costs(&costs)?;
        let subjects = self.query.subjects_partly(self.operated, self.listed.described)?;
        Ok(Peeked::look(&self.operated.limiter, self.listed, subjects, costs).await?.json())
    }

    async fn reset(&self) -> Result<Value, AdminError> {
        if !self.listed.described.has_main_subject() {
            let name = self.name();
            return Err(AdminError::refused(format!(
                "policy `{name}` counts no main subject; `DELETE policies/…/subjects` resets its other subjects"
            )));
        }
        let subjects = self.main()?;
        let reset = subjects.check(&self.operated.limiter, &self.listed.policy).reset().await;
        let traced_for = self.changed(reset, "a subject was reset")?;
        Ok(json!({ "policy": self.name(), "reset": [subjects.main().to_string()], "trace_ms": traced_for.map(ms) }))
    }

    async fn reset_all(&self) -> Result<Value, AdminError> {
        let subjects = self.query.subjects(self.operated, self.listed.described)?;
        let reset = subjects.check(&self.operated.limiter, &self.listed.policy).reset_all().await;
        let traced_for = self.changed(reset, "all subjects of a call were reset")?;
        let main = self.listed.described.has_main_subject().then(|| subjects.main());
        let all: Vec<_> = main.into_iter().chain(subjects.others().map(|(_, other)| other)).collect();
        let all: Vec<_> = all.into_iter().map(Subject::to_string).collect();
        Ok(json!({ "policy": self.name(), "reset": all, "trace_ms": traced_for.map(ms) }))
    }

    async fn ban(&self, body: &[u8]) -> Result<Value, AdminError> {
        let own = self.listed.ban_duration()?;
        let duration = body::ban(body)?.unwrap_or(own);
        let subjects = self.main()?;
        let banned = subjects.check(&self.operated.limiter, &self.listed.policy).ban(duration).await;
        self.changed(banned, "a subject was banned")?;
        let subject = subjects.main().to_string();
        Ok(json!({ "policy": self.name(), "banned": subject, "duration_ms": ms(duration) }))
    }

    async fn unban(&self) -> Result<Value, AdminError> {
        self.listed.ban_duration()?;
        let subjects = self.main()?;
        let unbanned = subjects.check(&self.operated.limiter, &self.listed.policy).unban().await;
        let traced_for = self.changed(unbanned, "a ban of a subject was ended, if there was one")?;
        let unbanned = [subjects.main().to_string()];
        Ok(json!({ "policy": self.name(), "unbanned": unbanned, "trace_ms": traced_for.map(ms) }))
    }

    async fn pause(&self, body: &[u8]) -> Result<Value, AdminError> {
        let length = body::pause(body, self.listed.longest_pause()?)?;
        let subjects = self.pausable()?;
        let check = || subjects.check(&self.operated.limiter, &self.listed.policy);
        self.changed(check().pause(length).await, "a subject was paused")?;
        let held = held_pause(check(), length).await;
        let subject = self.paused(&subjects);
        Ok(json!({ "policy": self.name(), "paused": subject, "duration_ms": ms(held) }))
    }

    async fn resume(&self) -> Result<Value, AdminError> {
        self.listed.longest_pause()?;
        let subjects = self.pausable()?;
        let resumed = subjects.check(&self.operated.limiter, &self.listed.policy).resume().await;
        self.changed(resumed, "the pause of a subject was ended, if there was one")?;
        Ok(json!({ "policy": self.name(), "resumed": self.paused(&subjects) }))
    }

    async fn bans(&self) -> Result<Value, AdminError> {
        self.listed.ban_duration()?;
        let from = self.query.only("from")?;
        let mut steps = self.operated.limiter.bans(slice::from_ref(&self.listed.policy));
        if let Some(from) = from
            && !steps.go_on_from(from).await?
        {
            return Err(AdminError::refused("`from` is the `next` of no page; leave it out to begin"));
        }
        let began = TokioInstant::now();
        let (mut bans, mut subjects) = (Vec::new(), 0);
        while let Some(page) = steps.next_page().await? {
            subjects += page.subjects();
            bans.extend(page.bans().iter().map(documents::banned));
            if bans.len() >= PAGE_BANS || began.elapsed() >= PAGE_TIME {
                break;
            }
        }
        Ok(json!({ "bans": bans, "subjects": subjects, "next": steps.place() }))
    }

    fn main(&self) -> Result<Subjects, AdminError> {
        self.query.only_subject(self.operated, self.listed.described, None)
    }

    /// Returns the subject that the policy lets be paused. The others are placeholders.
    fn pausable(&self) -> Result<Subjects, AdminError> {
        self.query.only_subject(self.operated, self.listed.described, self.listed.policy.paused_label())
    }

    fn paused(&self, subjects: &Subjects) -> Option<String> {
        subjects.subject(self.listed.policy.paused_label()).map(Subject::to_string)
    }

    /// Reports a change to the log, unless it failed. Overrides report their own changes.
    fn changed<T>(&self, changed: Result<T, BackendError>, what: &str) -> Result<T, AdminError> {
        let changed = made(changed)?;
        // If the operator is known, the call itself has reported the change.
        if context::operator().is_none() {
            log::changed_by_operator(self.name(), what, None);
        }
        Ok(changed)
    }
}

/// A request about the override for a policy, or for a subject.
struct OverrideRequest<'a> {
    operated: &'a Operated,
    policy: &'a str,
    /// The policy as it is listed.
    found: Result<&'a RegisteredPolicy, AdminError>,
    label: Option<&'a str>,
    query: &'a Query,
}

impl<'a> OverrideRequest<'a> {
    async fn run(self, method: Method, body: &[u8]) -> Result<Value, AdminError> {
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
