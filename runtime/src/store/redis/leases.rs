//! The leases of concurrent calls, once these are admitted.

use std::time::Instant;

use crate::error::BackendError;
use crate::store::lease_name::LeaseChange;
use crate::store::redis::connection::visit::Visit;
use crate::store::redis::script::pack::{lease_name, ttl_ms};
use crate::store::redis::server::Server;
use crate::store::request::Request;

impl Server {
    /// Renews the leases of a call, or gives them back.
    pub(super) async fn change_leases(
        &self,
        request: Request<'_>,
        change: LeaseChange,
        until: Instant,
        visit: Visit,
    ) -> Result<(), BackendError> {
        let arguments = pack(request, change);
        self.reply(&self.scripts.lease, self.keys(request), &arguments, until, visit).await.map(drop)
    }
}

/// Packs the arguments about the leases of a call, after the protocol: their name, and of each how long it lasts from now
/// on and its TTL.
fn pack(request: Request<'_>, change: LeaseChange) -> Vec<Vec<u8>> {
    let numbers = request.groups().iter().flat_map(|group| match change {
        LeaseChange::Renewed => [group.lease_us.unwrap_or_default(), ttl_ms(group.longest_us)],
        LeaseChange::GivenBack => [0, 0],
    });
    let name = lease_name(request.options.lease).to_vec();
    std::iter::once(name).chain(numbers.map(|number| number.to_string().into())).collect()
}
