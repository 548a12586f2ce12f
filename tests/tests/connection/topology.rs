//! Several servers: clusters, and primaries that sentinels name.

mod cluster;
mod modes;
mod sentinel;
