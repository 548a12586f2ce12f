//! The decisions of a request, as far as a response reports them.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tallygate_rules::Role;

use crate::context::{self, Context, Listener};
use crate::decision::{Charge, Decision, Denial, Recount, Rejection, RejectionKind, RuleStatus, Wait};
use crate::lock::lock;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// The most entries that are kept, so that the fields of a request with very many decisions have a bounded length.
const MOST: usize = 16;

/// The state of the limits that decided the calls of a request. Clones share their entries.
///
/// For each rule of a policy it keeps the tightest state: the denial with the longest wait, or else the least that
/// remains. It keeps the 16 tightest of all.
///
/// Within a web [`Layer`](super::Layer), [`current`](Self::current) returns those of the request. A layer around that one finds
/// them in the extensions of the response, if there is a decision. Rules that denied no call are among them only with
/// [`on_success`](super::Layer::on_success), or in a context that [collects](Context::collect) all decisions.
///
/// # Examples
///
/// ```
/// use tallygate::web::Decisions;
///
/// /// What a handler tells its client of the limits that have decided the request until now.
/// fn left() -> Option<String> {
///     let report = Decisions::current()?.report();
///     let (policy, status) = report.iter().min_by_key(|(_, status)| status.remaining())?;
///     let (used, limit, reset) = (status.used(), status.limit(), status.reset());
///     Some(format!("{}: {used} of {limit} are used, until {} s from now", policy.name(), reset.as_secs()))
/// }
/// # assert_eq!(left(), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    standings: Arc<Standings>,
}

#[derive(Debug, Default)]
struct Standings {
    limits: Mutex<Vec<LimitStatus>>,
    /// The longest wait of a call whose subject was paused, which is no limit of ours.
    paused: Mutex<Option<Wait>>,
}

/// The state of a rule or a ban.
#[derive(Clone, Debug)]
pub(crate) struct LimitStatus {
    pub(crate) policy: Policy,
    /// The subject, if a refund can raise what remains for it.
    refundable: Option<SubjectKey>,
    /// The rule; `None` for a ban.
    pub(crate) rule: Option<RuleStatus>,
    /// The longest wait of a call that it denied. `None` if it denied none.
    pub(crate) denied: Option<Wait>,
}

impl Decisions {
    /// Returns an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the decisions of the current request, or of the nearest context that collects them, until now. `None` outside
    /// of such a context.
    #[must_use]
    pub fn current() -> Option<Self> {
        context::listener().map(|standings| Self { standings })
    }

    /// Returns where each rule stands that has decided a call, with its policy. The rules of one policy are in their order. A
    /// ban is no rule.
    ///
    /// A rule that denied a call without a report counts as used up, and its reset is the wait of that call. The 16 tightest
    /// rules are kept.
    #[must_use]
    pub fn report(&self) -> Vec<(Policy, RuleStatus)> {
        self.standings().into_iter().filter_map(LimitStatus::reported).collect()
    }

    /// Adds a decision of a policy. Rules that did not deny the call are added only from a decision with a
    /// [report](crate::Check::report).
    pub fn add(&self, policy: &Policy, decision: &Decision) {
        self.standings.decided(policy, decision);
    }

    /// Returns whether a call was denied.
    #[must_use]
    pub fn any_denied(&self) -> bool {
        self.any_paused() || lock(&self.standings.limits).iter().any(|standing| standing.denied.is_some())
    }

    /// Returns whether a call was denied because its subject is paused.
    pub(crate) fn any_paused(&self) -> bool {
        self.paused_for().is_some()
    }

    fn paused_for(&self) -> Option<Wait> {
        *lock(&self.standings.paused)
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.any_paused() && lock(&self.standings.limits).is_empty()
    }

    /// Returns whether a call was denied as a duplicate.
    pub(crate) fn any_duplicate(&self) -> bool {
        lock(&self.standings.limits).iter().any(|known| known.denied.is_some() && known.role() == Some(Role::Duplicate))
    }

    /// Returns the longest wait of a denied call. `None` if no call was denied, or if one is never admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.longest_wait().max(self.paused_for())?.retry_after()
    }

    /// Returns the longest wait for a limit.
    pub(crate) fn longest_wait(&self) -> Option<Wait> {
        lock(&self.standings.limits).iter().filter_map(|standing| standing.denied).max()
    }

    /// Returns the tightest state of each rule. The rules of one policy are in their order.
    pub(crate) fn standings(&self) -> Vec<LimitStatus> {
        let mut tightest: Vec<LimitStatus> = Vec::new();
        for standing in lock(&self.standings.limits).iter() {
            match tightest.iter_mut().find(|known| known.has_same_rule(standing)) {
                Some(known) if standing.room() < known.room() => *known = standing.clone(),
                Some(_) => {}
                None => tightest.push(standing.clone()),
            }
        }
        tightest
    }
}

impl Context {
    /// Collects the decisions in this context, with the state of every rule after each decision. Each decision then
    /// costs the backend more.
    ///
    /// Peeks and calls in shadow are not collected.
    #[must_use]
    pub fn collect(self, decisions: &Decisions) -> Self {
        self.heard_by(Arc::clone(&decisions.standings) as _, true)
    }

    /// Collects the denied calls in this context, each with the rule that denied it, at no cost.
    #[must_use]
    pub fn collect_denials(self, decisions: &Decisions) -> Self {
        self.heard_by(Arc::clone(&decisions.standings) as _, false)
    }

    /// Sets the texts of rejections in responses, for example in the language of the request. Without such a text, the
    /// response has the text of the rejection.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Rejection;
    /// use tallygate::context::Context;
    ///
    /// fn message(rejection: &Rejection, context: &Context) -> Option<String> {
    ///     let seconds = rejection.retry_after()?.as_secs() + 1;
    ///     let is_german = context.get("language")?.starts_with("de");
    ///     is_german.then(|| format!("Bitte in {seconds} Sekunden noch einmal versuchen."))
    /// }
    ///
    /// let context = Context::new().with("language", "de-AT").messages(message);
    /// ```
    #[must_use]
    pub fn messages(self, messages: impl Fn(&Rejection, &Self) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with_messages(Arc::new(messages))
    }
}

impl Listener for Standings {
    fn decided(&self, policy: &Policy, decision: &Decision) {
        match decision {
            Decision::Allowed(permit) => {
                for status in permit.report() {
                    let refundable = permit.charge().and_then(|charge| charge.subject_of(status.position()).copied());
                    let rule = Some(status.clone());
                    self.insert(LimitStatus { policy: policy.clone(), refundable, rule, denied: None });
                }
            }
            Decision::Denied(denial) => self.add_denial(denial),
        }
    }

    /// Corrects what remains by the cost that a call has used. Denials do not change.
    fn recounted(&self, charge: &Charge, recount: &Recount) {
        let of_policy = |standing: &&mut LimitStatus| standing.policy.name() == charge.call.policy.name();
        for standing in lock(&self.limits).iter_mut().filter(|_| !charge.call.options.shadow).filter(of_policy) {
            if let (Some(status), Some(subject)) = (&mut standing.rule, &standing.refundable)
                && charge.subject_of(status.position()) == Some(subject)
                && let Some(change) = charge.change_of(status.position(), recount)
            {
                *status = status.recounted(change);
            }
        }
    }
}

impl Standings {
    fn add_denial(&self, denial: &Denial) {
        let wait = denial.retry_after().map_or(Wait::NEVER, Wait::of);
        if denial.kind() == RejectionKind::Paused {
            let mut paused = lock(&self.paused);
            *paused = (*paused).max(Some(wait));
            return;
        }
        let insert = |rule: Option<RuleStatus>, denied: Option<Wait>| {
            self.insert(LimitStatus { policy: denial.policy().clone(), refundable: None, rule, denied });
        };
        let Some(rule) = denial.rule() else { return insert(None, Some(wait)) };
        if denial.report().is_empty() {
            insert(Some(RuleStatus::used_up(rule.position(), rule.rule().clone())), Some(wait));
        }
        let behind = behind_duplicate(denial, wait);
        for status in denial.report() {
            let denied = match behind {
                Some(_) if rule.position() == status.position() => Some(Wait::of(status.reset())),
                Some(behind) => (behind == status.position()).then_some(wait),
                None => (rule.position() == status.position()).then_some(wait),
            };
            insert(Some(status.clone()), denied);
        }
    }

    fn insert(&self, standing: LimitStatus) {
        let mut standings = lock(&self.limits);
        let is_same = |known: &LimitStatus| known.has_same_rule(&standing) && known.refundable == standing.refundable;
        let same = standings.iter().position(is_same);
        if same.is_none() && standings.len() < MOST {
            standings.push(standing);
            return;
        }
        let replaced = match same {
            Some(same) => standings.get_mut(same),
            None => standings.iter_mut().max_by_key(|known| known.room()),
        };
        if let Some(known) = replaced.filter(|known| standing.room() < known.room()) {
            *known = standing;
        }
    }
}

/// Returns the position of the rule for which a denied call waits, if a duplicate is reported before it.
fn behind_duplicate(denial: &Denial, wait: Wait) -> Option<usize> {
    let reported = denial.rule()?.position();
    let duplicate = denial.report().iter().find(|status| status.position() == reported)?;
    if duplicate.rule().role() != Role::Duplicate || wait <= Wait::of(duplicate.reset()) {
        return None;
    }
    // A rule never denies for longer than it counts, except for ever.
    let may_deny = |status: &&RuleStatus| wait == Wait::NEVER || wait <= Wait::of(status.reset());
    let others = denial.report().iter().filter(|status| status.position() != reported).filter(may_deny);
    others.min_by_key(|status| status.remaining()).map(RuleStatus::position)
}

impl LimitStatus {
    /// Returns whether both are of the same rule, or of the same ban.
    fn has_same_rule(&self, other: &Self) -> bool {
        self.policy.name() == other.policy.name() && self.position() == other.position()
    }

    fn reported(self) -> Option<(Policy, RuleStatus)> {
        let wait = self.window().and_then(Wait::retry_after);
        let status = self.rule?;
        let status = match wait {
            Some(wait) if status.reset().is_zero() => status.resetting_in(wait),
            _ => status,
        };
        Some((self.policy, status))
    }

    fn position(&self) -> Option<usize> {
        self.rule.as_ref().map(RuleStatus::position)
    }

    /// Returns the greatest cost that would be admitted now.
    pub(crate) fn remaining(&self) -> u64 {
        self.rule.as_ref().map_or(0, RuleStatus::remaining)
    }

    /// Returns the time in which no more than what remains may be used. Where nothing remains, it ends as soon as something
    /// does. `None` if nothing is used, or if the time is not known.
    pub(crate) fn window(&self) -> Option<Wait> {
        let until_more = |status: &RuleStatus| status.used_up_for().unwrap_or(status.reset());
        let window = self.rule.as_ref().map(until_more).filter(|window| !window.is_zero());
        self.denied.filter(|_| !self.waits_for_another()).or(window.map(Wait::of))
    }

    /// Returns whether the denied call waits longer for another rule, which is not known, because a duplicate is
    /// reported before it.
    pub(crate) fn waits_for_another(&self) -> bool {
        let per = self.rule.as_ref().filter(|status| status.rule().role() == Role::Duplicate);
        let per = per.and_then(|status| status.rule().per());
        per.is_some_and(|per| self.denied > Some(Wait::of(per)))
    }

    /// Whether the limit concerns other calls, too. A rule for duplicates does only if it denied this one.
    pub(crate) fn concerns_other_calls(&self) -> bool {
        self.role() != Some(Role::Duplicate) || self.denied.is_some()
    }

    /// Returns the role of the rule. `None` for a ban.
    pub(crate) fn role(&self) -> Option<Role> {
        self.rule.as_ref().map(|status| status.rule().role())
    }

    /// Returns the unit of the rule; `None` for calls, and for a ban.
    pub(crate) fn unit(&self) -> Option<&str> {
        self.rule.as_ref().and_then(|status| status.rule().unit())
    }

    /// Orders limits by how much they allow. First come denials, the longest first; then comes what remains, and then
    /// for how long.
    pub(crate) fn room(&self) -> impl Ord + use<> {
        (Reverse(self.denied), self.remaining(), Reverse(self.window()))
    }
}
