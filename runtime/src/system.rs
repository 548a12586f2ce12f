//! The system below the limiter: time, tasks, random numbers, connections, and statics of a process.
//!
//! All other modules take these from here. They are those of std, tokio and the client library, unless this is built
//! with `--cfg tallygate_world`: then a fleet of limiters runs in one thread of a simulated world, and each of its
//! processes has its own.

pub(crate) mod budget;
pub(crate) mod home;
#[cfg(not(tallygate_world))]
mod real;
pub(crate) mod under_way;
#[cfg(tallygate_world)]
pub mod world;

#[cfg(not(tallygate_world))]
pub(crate) use self::real::*;
#[cfg(tallygate_world)]
pub(crate) use self::world::inside::*;
