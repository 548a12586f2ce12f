//! What reports name: rules, and reasons.

/// A rule, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedRule<'a> {
    pub(crate) position: usize,
    pub(crate) name: Option<&'a str>,
}

impl ObservedRule<'_> {
    /// Returns its name, which stays as it is when rules before it come or go, or else its position.
    pub(super) fn label(self) -> String {
        self.name.map_or_else(|| self.position.to_string(), str::to_owned)
    }
}

/// Why a call that may wait is denied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitRefusal {
    /// The greatest number of calls waits already.
    Full,
    /// It cannot be admitted before its deadline.
    Late,
}

impl WaitRefusal {
    pub(super) const ALL: [Self; 2] = [Self::Full, Self::Late];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Late => "late",
        }
    }
}

/// What becomes of calls that are taken ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchUse {
    Taken,
    Used,
    GivenBack,
}

impl PrefetchUse {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Used => "used",
            Self::GivenBack => "given_back",
        }
    }
}

/// The labels of a decision.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub(super) outcome: &'static str,
    /// The rule, if it was a rule's.
    pub(super) rule: Option<ObservedRule<'a>>,
    pub(super) decided_by: &'static str,
}
