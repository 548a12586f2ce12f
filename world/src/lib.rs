//! A simulated world for Tallygate: servers, networks and processes in one thread, by one seed.

pub mod server;
