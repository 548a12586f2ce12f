//! The code that the command line and the routes of a service share: both show and change the same, in the same JSON.

mod changes;
pub mod json;
mod open;
mod peeked;

pub use self::changes::{check_ban_duration, override_as_listed, rules_for, shadow};
pub use self::open::{OpenPolicy, VaryingRules};
pub use self::peeked::Peeked;
pub use super::spelling::remedy;

/// The longest file of policies, in bytes.
#[cfg(feature = "config")]
pub const FILE_BYTES: usize = crate::bounds::FILE_BYTES;

/// Whether a character is invisible: a control character, or one that changes the order or the shape of others.
#[must_use]
pub fn is_unseen(character: char) -> bool {
    crate::bounds::is_unseen(character)
}
