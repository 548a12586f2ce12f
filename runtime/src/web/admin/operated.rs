//! What the routes operate on.

use crate::limiter::Limiter;

/// The policies that a limiter decides by, and what is known of their secret.
#[derive(Clone)]
pub(super) struct Operated {
    pub(super) limiter: Limiter,
    /// Whether it is certain that the programs have none.
    pub(super) has_no_secret: bool,
}
