//! Which server it is.

/// The servers whose answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// Redis 6.2.
    Redis62,
    /// Redis 7.0.
    Redis70,
    /// Valkey 9.
    Valkey9,
}
