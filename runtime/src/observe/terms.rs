//! The terms of reports: rules, reasons and labels.

use tallygate_rules::Rule;

/// The target of all events and spans.
pub(super) const TARGET: &str = "tallygate";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedRule<'a> {
    pub(super) position: usize,
    pub(super) name: Option<&'a str>,
    /// `None` for calls.
    pub(super) unit: Option<&'a str>,
}

impl<'a> ObservedRule<'a> {
    pub(crate) fn new(position: usize, rule: &'a Rule) -> Self {
        Self { position, name: rule.name(), unit: rule.unit() }
    }

    /// Returns the name, which stays when rules before it come or go, or else the position.
    pub(super) fn label(self) -> String {
        self.name.map_or_else(|| self.position.to_string(), str::to_owned)
    }
}

/// Why a call is denied at once although it may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitRefusal {
    /// The greatest number of calls waits already.
    Full,
    /// The call cannot be admitted before its deadline.
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

/// What happens to hits that are taken ahead.
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

/// How what calls are charged in a unit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargeChange {
    /// A call was admitted at this cost.
    Charged,
    /// A settlement charged what was used beyond the cost.
    Added,
    /// A settlement or a refund gave back what was not used.
    Removed,
}

impl ChargeChange {
    pub(super) const ALL: [Self; 3] = [Self::Charged, Self::Added, Self::Removed];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub(super) outcome: &'static str,
    /// The rule that denied, if a rule did.
    pub(super) rule: Option<ObservedRule<'a>>,
    pub(super) decided_by: &'static str,
}
