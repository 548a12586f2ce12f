//! The result of one step of a scan, in every store.

pub(crate) struct ScanStep {
    /// Each subject, as in keys, after the place of its rule group among those that are scanned.
    pub(crate) subjects: Vec<(usize, String)>,
    /// About how much of the scan is done, from 0 to 1.
    pub(crate) progress: f64,
}
