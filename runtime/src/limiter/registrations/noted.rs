//! What came of a policy that was to be registered.

/// What came of a policy that was to be registered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Noted {
    /// It is registered, or will be.
    Done,
    /// It changes more often than it may be registered.
    NotNow,
    TooLong,
    NoPlace,
}
