//! Why a call that may wait is denied at once.

/// Why a call that may wait is denied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitRefusal {
    /// The greatest number of calls waits already.
    Full,
    /// It cannot be admitted before its deadline.
    Late,
}

#[cfg(feature = "metrics")]
impl WaitRefusal {
    pub(super) const ALL: [Self; 2] = [Self::Full, Self::Late];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Late => "late",
        }
    }
}
