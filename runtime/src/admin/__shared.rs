//! What the command line and the routes of a service have in common: they show and change the same, in the same JSON.

mod duration;
pub mod json;
mod open;
mod overrides;
mod peeked;

pub use self::duration::read_duration;
pub use self::open::{OpenPolicy, VaryingRules};
pub use self::overrides::override_as_listed;
pub use self::peeked::Peeked;
pub use super::spelling::remedy;
