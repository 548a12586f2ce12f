//! What a permit holds while its call is under way.

/// The leases of a call under way. Dropping it gives them back.
pub(crate) type Lease = Box<dyn Send + Sync>;
