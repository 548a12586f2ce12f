//! What the limiter takes from the system: time, tasks, chance, connections, and what each process has one of.
//!
//! All other modules take it from here. It is what std, tokio and the client library offer, unless this is built with
//! `--cfg tallygate_world`: then a fleet of limiters runs in one thread of a simulated world, and each of its processes has
//! time, tasks, chance and connections of its own.

pub(crate) mod budget;
pub(crate) mod home;
#[cfg(not(tallygate_world))]
mod real;
#[cfg(tallygate_world)]
pub mod world;

#[cfg(not(tallygate_world))]
pub(crate) use self::real::*;
#[cfg(tallygate_world)]
pub(crate) use self::world::inside::*;
