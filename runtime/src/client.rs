//! Calls to the servers of others, which say in their answers how much they admit.
//!
//! [`pace`] makes a layer around a client: no more calls than a policy admits, in the whole fleet, and none while the other side asks
//! for a pause. [`ResponseReader`] reads what an answer says about limits, from all the fields that servers use for it.

mod fields;
mod heard;
mod moment;
mod pace;
mod response_reader;
#[cfg(test)]
mod tests;

pub use self::heard::{Heard, HeardLimit, HeardPause};
pub use self::pace::{Meters, Pace, PaceError, PaceService, PacedBody, pace};
pub use self::response_reader::ResponseReader;
