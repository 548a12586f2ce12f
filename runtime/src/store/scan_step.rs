//! What a step of a walk over tallies finds, in every store.

/// What a step has found.
pub(crate) struct ScanStep {
    /// The place of the rule group among those that are walked over, and the subject, as it stands in keys.
    pub(crate) subjects: Vec<(usize, String)>,
    /// About how much of the walk is done, from 0 to 1.
    pub(crate) progress: f64,
}
