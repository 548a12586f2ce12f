//! A rule, as reports name it.

/// A rule, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedRule<'a> {
    pub(crate) position: usize,
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "only metrics show it"))]
    pub(crate) name: Option<&'a str>,
}

#[cfg(feature = "metrics")]
impl ObservedRule<'_> {
    /// Returns its name, which stays as it is when rules before it come or go, or else its position.
    pub(super) fn label(self) -> String {
        self.name.map_or_else(|| self.position.to_string(), str::to_owned)
    }
}
