//! The rows of a file of calls, of which some may be mistaken.

use std::io::{self, Write};
use std::time::SystemTime;

use tallygate::simulation::{TraceCall, TraceError, TraceErrorKind};

use crate::output::printable;
use crate::progress::ProgressBar;

/// A call of the file, or the mistake in its row.
type Row = Result<TraceCall, TraceError>;

/// The most mistaken rows that are reported one by one.
const MOST_NAMED: u64 = 10;

pub(super) struct Rows {
    skips: bool,
    skipped: u64,
    progress: ProgressBar,
}

impl Rows {
    /// With `skips`, mistaken rows are skipped. Without it, the first one is an error.
    pub(super) fn new(skips: bool, progress: ProgressBar) -> Self {
        Self { skips, skipped: 0, progress }
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Decides the call of a row, and returns its time and the decision; `None` if the row is skipped.
    ///
    /// # Errors
    ///
    /// The row is no call, or cannot be decided, and is not skipped.
    pub(super) fn decide<T>(
        &mut self,
        row: Row,
        decide: impl FnOnce(&TraceCall) -> Result<T, TraceError>,
    ) -> Result<Option<(SystemTime, T)>, TraceError> {
        self.progress.count();
        match row.and_then(|call| Ok((call.time(), decide(&call)?))) {
            Ok(decided) => Ok(Some(decided)),
            // An input that cannot be read has no next row.
            Err(mistake) if self.skips && mistake.kind() != TraceErrorKind::Read => {
                self.skip(&mistake);
                Ok(None)
            }
            Err(mistake) => Err(mistake),
        }
    }

    fn skip(&mut self, mistake: &TraceError) {
        self.skipped += 1;
        let text = match self.skipped {
            ..=MOST_NAMED => printable(&mistake.to_string()),
            number if number == MOST_NAMED + 1 => "more rows are left out".to_owned(),
            _ => return,
        };
        self.progress.interrupt(|| {
            // If the note cannot be written, the answer still has the number of rows.
            let _ = writeln!(io::stderr(), "{text}");
        });
    }
}
