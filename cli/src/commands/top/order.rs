//! What comes first.

use clap::ValueEnum;

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Who has used most of a rule
    Used,
    /// Who is denied longest
    Wait,
    /// Who was denied most often within this hour and the one before, if the programs keep denied subjects
    Denied,
}
