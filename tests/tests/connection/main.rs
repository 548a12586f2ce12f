//! Connections to Redis: addresses, passwords, permissions and certificates.

mod addresses;
mod connections;
mod misunderstood;
mod passwords;
mod permissions;
mod remedies;
mod tls;
mod tls_topologies;
