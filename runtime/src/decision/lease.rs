//! What a permit holds while its call is running.

/// The leases of a concurrent call. Dropping it gives them back.
pub(crate) type Lease = Box<dyn Send + Sync>;
