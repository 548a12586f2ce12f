//! Calls to the servers of others, which say in their answers how much they admit.
//!
//! [`ResponseReader`] reads what an answer says about limits, from all the fields that servers use for it: how long to send
//! nothing, and what is left of each limit.

mod answer_clock;
mod fields;
mod heard;
mod moment;
mod response_reader;
#[cfg(test)]
mod tests;

pub use self::heard::{Heard, HeardLimit, HeardPause};
pub use self::response_reader::ResponseReader;
