//! A simulated world for Tallygate: servers, networks and processes in one thread, by one seed.

#[cfg(tallygate_world)]
pub mod checker;
#[cfg(tallygate_world)]
pub mod engine;
#[cfg(tallygate_world)]
pub mod fleet;
#[cfg(tallygate_world)]
pub mod history;
#[cfg(tallygate_world)]
pub mod hour;
#[cfg(tallygate_world)]
pub mod net;
#[cfg(tallygate_world)]
mod partner;
#[cfg(tallygate_world)]
pub mod planted;
#[cfg(tallygate_world)]
pub mod run;
pub mod server;
#[cfg(tallygate_world)]
pub mod topology;
#[cfg(tallygate_world)]
pub mod workload;
