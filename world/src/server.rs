//! A Redis without a network and without a clock of its own: bytes go in, bytes come out, and the caller sets the time.

#![allow(clippy::unnecessary_wraps, reason = "every command has the same signature")]

mod acl;
mod administration;
mod arguments;
mod channels;
mod client;
mod cluster;
mod cluster_commands;
mod command;
mod dispatch;
mod expiry;
mod flavour;
mod gate;
mod glob;
mod hash_ordered;
mod hash_value;
mod hashes;
mod info;
mod keys;
mod keyspace;
mod machine;
mod numbers;
mod refusal;
mod reply;
mod request;
mod scan;
mod script;
mod session;
mod settings;
mod slot;
mod snapshot;
mod sorted_ranges;
mod sorted_set;
mod sorted_sets;
mod state;
mod stream;
mod strings;
mod table;
mod user;

pub use self::cluster::{Cluster, ClusterNode};
pub use self::flavour::Flavour;
pub use self::machine::Server;
#[cfg(tallygate_world)]
pub(crate) use self::script::OVERRUN;
pub use self::session::SessionId;
pub use self::slot::slot;
pub use self::state::{Faults, Role};
pub use self::stream::Write;
