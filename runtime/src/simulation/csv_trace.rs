//! A trace that is read from text.

use std::io::{BufRead, BufReader, Read, Split};

use super::call::Call;
use super::columns::{Columns, LineMistake};
use super::csv_line::LineSplitter;
use super::error::{TraceError, TraceErrorKind, TracePlace};

/// A trace that is read from text in columns, as CSV: one line for each call. Empty lines are skipped.
///
/// The first line names the columns, in any order:
///
/// | column | what it holds |
/// | --- | --- |
/// | `time` | when the call was made: RFC 3339, like `2027-01-15T08:00:00.25Z`, or seconds since 1970, like `1800000000.25` |
/// | `subject` | who is counted, as any text; without the column, all calls are one subject |
/// | `cost` | the weight of the call; without the column, or where it is empty, 1 |
/// | `subject:network` | the subject that the policy knows by the label `network`, for rules with a subject of their own |
///
/// It is an iterator. A line that is not a call is an error with the number of the line, and the next item is the line after
/// it: the caller chooses to stop or to go on.
///
/// # Examples
///
/// ```
/// use tallygate::simulation::{Call, CsvTrace, TraceError};
///
/// let text = "time,subject,cost\n2027-01-15T08:00:00Z,alice,\nyesterday,bob,2\n1800000002.5,bob,2\n";
/// let calls: Result<Vec<Call>, TraceError> = CsvTrace::new(text.as_bytes())?.collect();
/// assert_eq!(
///     calls.unwrap_err().to_string(),
///     "line 3: `time` must be like 2027-01-15T08:00:00Z, or seconds since 1970 like 1800000000.25"
/// );
/// let costs: Vec<_> = CsvTrace::new(text.as_bytes())?.flatten().map(|call| call.cost()).collect();
/// assert_eq!(costs, [1, 2]);
/// # Ok::<(), TraceError>(())
/// ```
#[derive(Debug)]
pub struct CsvTrace<R> {
    lines: Lines<R>,
    splitter: LineSplitter,
    columns: Columns,
}

impl<R: Read> CsvTrace<R> {
    /// Reads the line with the names of the columns. The reader needs no buffer.
    ///
    /// # Errors
    ///
    /// That line cannot be read, lacks the column `time`, or names a column that is unknown or twice there.
    pub fn new(reader: R) -> Result<Self, TraceError> {
        let mut lines = Lines { rest: Some(BufReader::new(reader).split(b'\n')), number: 0 };
        let mut splitter = LineSplitter::new();
        let Some(line) = lines.next().transpose()? else {
            let mistake = "the text is empty; name the columns in its first line, like `time,subject`".into();
            return Err(lines.mistake(TraceErrorKind::Header, mistake));
        };
        let columns = splitter.split(&line).and_then(|names| Columns::from_header(&names));
        match columns {
            Ok(columns) => Ok(Self { lines, splitter, columns }),
            Err(mistake) => Err(lines.mistake(TraceErrorKind::Header, mistake)),
        }
    }
}

impl<R: Read> Iterator for CsvTrace<R> {
    type Item = Result<Call, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.lines.next()? {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let call = self.splitter.split(&line).and_then(|fields| self.columns.call(&fields));
        Some(match call {
            Ok(call) => Ok(call.with_line(self.lines.number)),
            Err(mistake) => Err(self.lines.mistake(TraceErrorKind::Line, mistake)),
        })
    }
}

/// The lines of a text that are not empty, each with a newline.
#[derive(Debug)]
struct Lines<R> {
    /// `None` where reading has failed.
    rest: Option<Split<BufReader<R>>>,
    /// That of the last line.
    number: u64,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Option<Result<String, TraceError>> {
        loop {
            let line = self.rest.as_mut()?.next()?;
            self.number += 1;
            let mut line = match line {
                Ok(line) => line,
                Err(error) => {
                    self.rest = None;
                    let mistake = self.mistake(TraceErrorKind::Read, format!("it cannot be read: {error}").into());
                    return Some(Err(mistake.with_source(error)));
                }
            };
            line.push(b'\n');
            match String::from_utf8(line) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => return Some(Ok(line)),
                Err(_) => {
                    return Some(Err(self.mistake(TraceErrorKind::Line, "it is not UTF-8; convert the text".into())));
                }
            }
        }
    }

    fn mistake(&self, kind: TraceErrorKind, mistake: LineMistake) -> TraceError {
        TraceError::new(kind, TracePlace { line: (self.number > 0).then_some(self.number), call: None }, mistake)
    }
}
