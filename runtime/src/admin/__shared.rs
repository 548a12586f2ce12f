//! What the command line and the routes of a service have in common: they show and change the same, in the same JSON.

pub mod json;
mod open;
mod peeked;

pub use self::open::{OpenPolicy, VaryingRules};
pub use self::peeked::Peeked;
pub use super::spelling::remedy;
