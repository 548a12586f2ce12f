//! The traits of stores: of everything that decides calls, of tallies on a server, and of shared overrides.

use std::future::Future;
use std::time::Duration;

use tallygate_rules::{MAX_PER, format_duration};

use super::answer::{LayeredAnswer, Outcome};
use super::redis_types::StoredText;
use crate::call::{Call, ReturnedLeases, TallyId};
use crate::decision::{AdmittedAt, Recount};
use crate::error::{BackendError, BackendErrorKind};
use crate::micros;
use crate::policy::Policy;
use crate::system::Instant;

/// Decides calls, by its tallies or as a layer before them.
pub(crate) trait Decider: Send + Sync + 'static {
    /// Decides a call that this process can decide by itself; `None` for any other, or while the rules are too old.
    fn decide_at_once(&self, _: Call<'_>) -> Option<Result<LayeredAnswer, BackendError>> {
        None
    }

    /// Decides a call. An attempt asks this after [`decide_at_once`](Self::decide_at_once), so a layer looks again only
    /// for what may have changed meanwhile.
    fn decide(&self, call: Call<'_>) -> impl Future<Output = Result<LayeredAnswer, BackendError>> + Send;

    /// Tells the layers below the outcome of a whole call, after `prefetch` has decided some of its subjects itself. The call
    /// was sent at `asked_us`.
    fn note(&self, call: Call<'_>, outcome: Outcome, asked_us: u64);

    /// Forgets what this process knows against a call like this one, because there may be room again.
    fn forget(&self, call: Call<'_>);

    /// Changes the cost of an admitted call to what it has used, in every rule that still counts it. Returns whether
    /// that has changed anything.
    fn recount(
        &self,
        counted: Call<'_>,
        recount: &Recount,
        admitted: &AdmittedAt,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Removes the tallies of `call`.
    fn reset(&self, call: Call<'_>) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// Bans the main subject of `call` for `duration`, or ends its ban.
    fn ban(&self, call: Call<'_>, duration: Duration) -> impl Future<Output = Result<(), BackendError>> + Send;
}

/// Tallies on a server, as the layers before it see them.
pub(crate) trait RemoteStore: Decider {
    /// Returns why no calls are decided, if this process knows of an outage without asking; `None` if calls may be
    /// decided.
    fn known_outage(&self) -> Option<BackendErrorKind>;

    /// Whether a server has decided a call. Before that, nothing shows that the setup is right.
    fn has_decided(&self) -> bool;

    /// Whether tokio's clock was ever seen to differ from the system's, as it does if a test pauses it.
    fn have_clocks_differed(&self) -> bool;

    /// Returns the longest that a decision by the policy takes.
    fn deadline_of(&self, policy: &Policy) -> Duration;

    /// Gives back leases of calls by the policy. Missing leases change nothing.
    fn give_back(
        &self,
        policy: &Policy,
        leases: &[ReturnedLeases],
    ) -> impl Future<Output = Result<(), BackendError>> + Send;

    fn renew_leases(&self, leases: Call<'_>) -> impl Future<Output = Result<(), BackendError>> + Send;
}

/// Keeps the overrides of all processes, each as a text in a field.
pub(crate) trait OverrideStore: Send + Sync + 'static {
    /// Returns the version, which is new after every change.
    fn overrides_version(&self) -> impl Future<Output = Result<Option<String>, BackendError>> + Send;

    /// Returns all overrides. The inner error says that there are too many, or that they are too long.
    fn all_overrides(
        &self,
        most: usize,
    ) -> impl Future<Output = Result<Result<Vec<StoredText>, String>, BackendError>> + Send;

    /// Returns at least this number of overrides, if there are so many, in steps of limited size. One may be returned
    /// twice.
    fn some_overrides(&self, number: usize) -> impl Future<Output = Result<Vec<StoredText>, BackendError>> + Send;

    /// Removes the expired overrides, and then stores a text in a field or removes the field. The new version names the
    /// operator, if known. Returns whether the field was there; `None` if nothing was stored because there are `most`
    /// others.
    fn change_override(
        &self,
        field: &str,
        text: Option<&str>,
        operator: Option<&str>,
        most: usize,
        expired: Vec<StoredText>,
    ) -> impl Future<Output = Result<Option<bool>, BackendError>> + Send;

    /// The time by which overrides expire, in microseconds since 1970, as far as this process knows it.
    fn override_time_us(&self) -> u64;

    /// Asks for that time. Every decision also does that.
    fn ask_override_time(&self) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// Awaits a future that asks this store, for as long as a decision by `policy` may take. Also returns its deadline.
    ///
    /// # Errors
    ///
    /// There is no runtime for the connections to the server.
    fn wait_for<T: Send>(
        &self,
        policy: &Policy,
        asking: impl Future<Output = Result<T, BackendError>> + Send,
    ) -> impl Future<Output = Result<(Result<T, BackendError>, Instant), BackendError>> + Send;
}

/// Returns the tally of the main subject of `call`, and how many microseconds a ban of `duration` lasts.
///
/// # Errors
///
/// The policy has no ban, or the duration is longer than any ban.
pub(super) fn tally_to_ban(call: Call<'_>, duration: Duration) -> Result<(TallyId<'_>, u64), BackendError> {
    let Some(id) = call.tally_ids().next().filter(|id| id.group.ban.is_some()) else {
        let name = call.policy.name();
        return Err(BackendError::misuse(format!("policy `{name}` has no ban; give it one with `PolicyBuilder::ban`")));
    };
    if duration > MAX_PER {
        let longest = format_duration(MAX_PER);
        return Err(BackendError::misuse(format!("a ban lasts {longest} at most; give it a shorter `duration`")));
    }
    // Rounded up, as a ban of zero would end the current one.
    Ok((id, micros::rounded_up(duration)))
}
