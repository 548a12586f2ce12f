//! Figures that were recorded before, and what became of them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// What a file of recorded figures has for each figure: the rows of its tables of which the first column names the figure, and
/// the second one is its value.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    values: HashMap<String, f64>,
}

impl Recorded {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Self { values: text.lines().filter_map(row).collect() })
    }

    /// Returns a row of the table: the figure, what was recorded, what was measured, and their ratio.
    pub(crate) fn beside(&self, figure: &str, measured: f64) -> Option<String> {
        let recorded = self.values.get(figure)?;
        Some(format!("| {figure} | {recorded} | {measured:.0} | {:.3} |\n", measured / recorded))
    }
}

fn row(line: &str) -> Option<(String, f64)> {
    let [figure, recorded, ..] = *line.strip_prefix("| ")?.split(" | ").collect::<Vec<_>>() else { return None };
    Some((figure.trim().to_owned(), recorded.trim().parse().ok()?))
}
