//! Where processes share overrides.

use std::future::Future;

use super::redis_types::StoredText;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::system::Instant;

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
