//! A trace that is read from text in columns.

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufReader, Read};
use std::mem;
use std::time::Duration;

use csv_core::{ReadRecordResult, Reader};

use super::time;
use super::trace::{TraceCall, TraceError, TraceErrorKind, TracePlace};
use crate::bounds::shown_word;
#[cfg(doc)]
use crate::policy::Policy;
use crate::subject::Subject;

/// The longest line, in bytes.
const LINE_BYTES: usize = 64 * 1024;

/// A trace that is read from text in columns, as CSV: one line for each call, of 64 KiB at most. Empty lines are skipped.
///
/// The first line names the columns, in any order:
///
/// | column | what it holds |
/// | --- | --- |
/// | `time` | when the call was made: RFC 3339, like `2027-01-15T08:00:00.25Z`, or seconds since 1970, like `1800000000.25` |
/// | `subject` | who is counted, as any text; without the column, all calls are one subject |
/// | `cost` | the weight of the call; without the column, or where it is empty, 1 |
/// | `tokens`, `bytes`, … | what the call costs in the unit of that name, if it is [one of the policy](Self::with_units); without the column, or where it is empty, the call [names no cost](TraceCall::with_cost_of) |
/// | `pause` | for how many seconds the other side has asked to [pause](TraceCall::with_pause) in its answer, like `30` or `1.5`; without the column, or where it is empty, it has not |
/// | `subject:network` | the subject that the policy knows by the label `network`, for rules with a subject of their own |
///
/// It is an iterator. A line that is not a call is an error with the number of the line, and the next item is the next
/// line. The caller chooses to stop or to go on.
///
/// # Examples
///
/// ```
/// use tallygate::simulation::{TraceCall, CsvTrace, TraceError};
///
/// let text = "time,subject,cost\n2027-01-15T08:00:00Z,alice,\nyesterday,bob,2\n1800000002.5,bob,2\n";
/// let calls: Result<Vec<TraceCall>, TraceError> = CsvTrace::new(text.as_bytes())?.collect();
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
    lines: CsvLines<R>,
    splitter: LineSplitter,
    columns: Columns,
}

impl<R: Read> CsvTrace<R> {
    /// Reads the line with the names of the columns, which has no units. The reader needs no buffer.
    ///
    /// # Errors
    ///
    /// That line cannot be read, lacks the column `time`, or has an unknown or repeated column.
    pub fn new(reader: R) -> Result<Self, TraceError> {
        Self::with_units(reader, [])
    }

    /// Reads the line with the names of the columns, which may be these [units](Policy::units).
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::simulation::{CsvTrace, Simulation};
    /// use tallygate::{Policy, Rule};
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("chat")
    ///     .rule(Rule::sliding_window(60, minute))
    ///     .rule(Rule::sliding_window(20_000, minute).counting("tokens"))
    ///     .build()?;
    /// let text = "time,subject,tokens\n1800000000,alice,15000\n1800000001,alice,9000\n1800000002,alice,5000\n";
    /// let trace = CsvTrace::with_units(text.as_bytes(), policy.units())?;
    /// let mut simulation = Simulation::new(&policy);
    /// let summary = simulation.run(trace, Err)?.to_string();
    /// assert_eq!(summary, "3 calls: 2 admitted, 1 denied (1 by `20000 tokens per 1m`); longest wait 59s");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_units<'u>(reader: R, units: impl IntoIterator<Item = &'u str>) -> Result<Self, TraceError> {
        let mut names: Vec<&str> = Vec::new();
        for unit in units {
            if !names.contains(&unit) {
                names.push(unit);
            }
        }
        let mut lines = CsvLines { rest: Some(BufReader::new(reader)), is_cut: false, number: 0 };
        let mut splitter = LineSplitter::new();
        let Some(line) = lines.next().transpose()? else {
            let mistake = "the text is empty; name the columns in its first line, like `time,subject`".into();
            return Err(lines.mistake(TraceErrorKind::Header, mistake));
        };
        let columns = splitter.split(&line).and_then(|columns| Columns::from_header(&columns, &names));
        match columns {
            Ok(columns) => Ok(Self { lines, splitter, columns }),
            Err(mistake) => Err(lines.mistake(TraceErrorKind::Header, mistake)),
        }
    }

    /// Returns whether there is a column `pause`, for which a policy has to be [pausable](crate::PolicyBuilder::pausable).
    #[must_use]
    pub fn has_pauses(&self) -> bool {
        self.columns.pause.is_some()
    }
}

impl<R: Read> Iterator for CsvTrace<R> {
    type Item = Result<TraceCall, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        Some(line.and_then(|line| {
            let call = self.splitter.split(&line).and_then(|fields| self.columns.call(&fields));
            let call = call.map(|call| call.with_line(self.lines.number));
            call.map_err(|mistake| self.lines.mistake(TraceErrorKind::Line, mistake))
        }))
    }
}

/// The lines of a text that are not empty, each with a newline.
#[derive(Debug)]
struct CsvLines<R> {
    /// `None` after reading has failed.
    rest: Option<BufReader<R>>,
    /// Whether the last line was too long, so that its rest is still to be skipped.
    is_cut: bool,
    /// The number of the last line.
    number: u64,
}

impl<R: Read> CsvLines<R> {
    fn next(&mut self) -> Option<Result<String, TraceError>> {
        loop {
            let line = read_line(self.rest.as_mut()?, mem::take(&mut self.is_cut));
            if line.as_ref().is_ok_and(Vec::is_empty) {
                return None;
            }
            self.number += 1;
            let line = match line {
                Ok(line) if !line.ends_with(b"\n") => {
                    self.is_cut = true;
                    return Some(
                        Err(self.mistake(TraceErrorKind::Line, "it is longer than 64 KiB; shorten it".into())),
                    );
                }
                Ok(line) => line,
                Err(error) => {
                    self.rest = None;
                    let mistake = self.mistake(TraceErrorKind::Read, format!("it cannot be read: {error}").into());
                    return Some(Err(mistake.with_source(error)));
                }
            };
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

/// Reads a line, with a newline also at the end of the text. A line that is too long is cut, and has no newline. If the
/// line before was cut, its rest is skipped first.
fn read_line(text: &mut BufReader<impl Read>, is_cut: bool) -> io::Result<Vec<u8>> {
    if is_cut {
        text.skip_until(b'\n')?;
    }
    let mut line = Vec::new();
    text.take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
    if !line.is_empty() && line.len() <= LINE_BYTES && !line.ends_with(b"\n") {
        line.push(b'\n');
    }
    Ok(line)
}

/// The start of the name of a column with another subject. The rest is its label.
const LABELLED: &str = "subject:";

/// Names the columns that there may be.
fn known(units: &[&str]) -> String {
    let mut names = vec!["time", "subject", "cost", "pause"];
    names.extend(units);
    format!("the columns are `{}` and `{LABELLED}label`", names.join("`, `"))
}

/// The mistake in a line, and the remedy.
type LineMistake = Cow<'static, str>;

/// The position of each value of a call in its line.
#[derive(Debug, Default)]
struct Columns {
    time: usize,
    subject: Option<usize>,
    cost: Option<usize>,
    pause: Option<usize>,
    others: Vec<(Box<str>, usize)>,
    units: Vec<(Box<str>, usize)>,
    count: usize,
}

impl Columns {
    fn from_header(header: &[&str], units: &[&str]) -> Result<Self, LineMistake> {
        let mut columns = Self { count: header.len(), ..Self::default() };
        let mut time = None;
        for (index, &name) in header.iter().enumerate() {
            if header.iter().take(index).any(|other| *other == name) {
                return Err(format!("column `{}` is there twice; remove one", shown_word(name)).into());
            }
            match (name, name.strip_prefix(LABELLED)) {
                ("time", _) => time = Some(index),
                ("subject", _) => columns.subject = Some(index),
                ("cost", _) => columns.cost = Some(index),
                ("pause", _) => columns.pause = Some(index),
                (_, Some(label)) => columns.others.push((label.into(), index)),
                (_, None) if units.contains(&name) => columns.units.push((name.into(), index)),
                (_, None) => return Err(format!("column `{}` is unknown; {}", shown_word(name), known(units)).into()),
            }
        }
        columns.time = time.ok_or_else(|| format!("column `time` is missing; {}", known(units)))?;
        Ok(columns)
    }

    fn call(&self, fields: &[&str]) -> Result<TraceCall, LineMistake> {
        if fields.len() != self.count {
            let (found, named) = (fields.len(), self.count);
            return Err(format!("fields: {found} found, {named} named in the header; give each column a field").into());
        }
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let at = time::parse(field(self.time))
            .ok_or("`time` must be like 2027-01-15T08:00:00Z, or seconds since 1970 like 1800000000.25")?;
        let subject = self.subject.map_or_else(Subject::everyone, |index| Subject::of(field(index)));
        let cost = amount("cost", self.cost.map_or("", field))?.unwrap_or(1);
        let mut call = TraceCall::new(at, subject).with_cost(cost);
        if let Some(pause) = pause(self.pause.map_or("", field))? {
            call = call.with_pause(pause);
        }
        for (unit, index) in &self.units {
            if let Some(cost) = amount(unit, field(*index))? {
                call = call.with_cost_of(unit, cost);
            }
        }
        Ok(self.others.iter().fold(call, |call, (label, index)| call.with_subject(label, Subject::of(field(*index)))))
    }
}

/// Reads a cost; `None` if the field is empty.
fn amount(column: &str, field: &str) -> Result<Option<u64>, LineMistake> {
    let read = (!field.is_empty()).then(|| field.parse());
    read.transpose().map_err(|_| format!("`{column}` must be a whole number, like 3").into())
}

/// Reads the seconds of a pause; `None` if the field is empty.
fn pause(field: &str) -> Result<Option<Duration>, LineMistake> {
    let seconds = |field: &str| field.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let read = (!field.is_empty()).then(|| seconds(field).ok_or("`pause` must be a number of seconds, like 30 or 1.5"));
    Ok(read.transpose()?)
}

/// Splits lines into their fields. A call is one line, so that its number is known.
#[derive(Debug)]
struct LineSplitter {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl LineSplitter {
    fn new() -> Self {
        Self { reader: Reader::new(), text: Vec::new(), ends: Vec::new() }
    }

    /// Returns the fields of a line that ends with a newline, without white space around them.
    ///
    /// # Errors
    ///
    /// The line ends within a quoted field, or a carriage return within the line ends the call.
    fn split(&mut self, line: &str) -> Result<Vec<&str>, LineMistake> {
        self.reader.reset();
        // Fields are not longer than their line, and each but the last ends with a comma.
        self.text.resize(line.len(), 0);
        self.ends.resize(line.len() + 1, 0);
        let (result, read, _, fields) = self.reader.read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        if result != ReadRecordResult::Record {
            return Err("a quote is open at its end; close it, as each call is one line".into());
        }
        // The reader takes a carriage return alone for the end of a call, and more calls may be behind it.
        if line.get(read..).is_some_and(|rest| !rest.trim().is_empty()) {
            return Err("a carriage return is within it; end each line with a newline, as each call is one line".into());
        }
        let mut start = 0;
        let field = |&end| {
            let field = self.text.get(start..end).and_then(|field| str::from_utf8(field).ok());
            start = end;
            field.unwrap_or_default().trim()
        };
        Ok(self.ends.iter().take(fields).map(field).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_trimmed_and_may_be_quoted() {
        let mut splitter = LineSplitter::new();
        assert_eq!(splitter.split("1, a b ,\"c,\"\"d\"\"\",é,\r\n").unwrap(), ["1", "a b", "c,\"d\"", "é", ""]);
        assert_eq!(splitter.split("7\n").unwrap(), ["7"]);
        assert_eq!(splitter.split(",\n").unwrap(), ["", ""]);
    }

    #[test]
    fn no_call_behind_a_carriage_return_is_dropped_without_a_word() {
        let text = "\u{feff}time,subject\r\n1,a\r2,b\n3,\"c\rd\"\r\n4,\0e\r\r\n\r\n5\n6,f,g\n7,h";
        let calls = CsvTrace::new(text.as_bytes()).unwrap();
        let found: Vec<_> = calls.map(|call| call.map(|_| ()).map_err(|error| error.to_string())).collect();
        let return_within = "a carriage return is within it; end each line with a newline, as each call is one line";
        let fields = |found| format!("fields: {found} found, 2 named in the header; give each column a field");
        let bad = |line, mistake: &str| Err(format!("line {line}: {mistake}"));
        let expected = [bad(2, return_within), Ok(()), Ok(()), bad(6, &fields(1)), bad(7, &fields(3)), Ok(())];
        assert_eq!(found, expected);
        let header = CsvTrace::new(&b"time,subject\r1,a\r2,b\r"[..]).unwrap_err().to_string();
        assert_eq!(header, format!("line 1: {return_within}"));
    }

    #[test]
    fn a_line_that_is_too_long_is_a_mistake_of_its_own_and_takes_no_memory() {
        let line = |length: usize| format!("2,{}", "x".repeat(length - 2));
        let text = [
            "time,subject",
            &line(LINE_BYTES),
            &line(LINE_BYTES + 1),
            &line(LINE_BYTES + 2),
            &line(5 * LINE_BYTES),
            "3,a",
            &line(2 * LINE_BYTES),
        ];
        let calls = CsvTrace::new(io::Cursor::new(text.join("\n"))).unwrap();
        let found: Vec<_> = calls.map(|call| call.map_err(|error| error.to_string()).map(|call| call.line())).collect();
        let bad = |line| Err(format!("line {line}: it is longer than 64 KiB; shorten it"));
        assert_eq!(found, [Ok(Some(2)), bad(3), bad(4), bad(5), Ok(Some(6)), bad(7)]);
        // A line need not end.
        let error = CsvTrace::new(io::repeat(b'x')).unwrap_err().to_string();
        assert_eq!(error, "line 1: it is longer than 64 KiB; shorten it");
        let mut endless = CsvTrace::new((&b"time\n"[..]).chain(io::repeat(b'1'))).unwrap();
        assert!(endless.next().unwrap().is_err());
    }

    #[test]
    fn each_unit_has_a_column_of_its_own() {
        let text = "time,tokens,cost,input_bytes\n1,20000,,\n2,,2,7\n3,0,,\n4,-1,,\n5,many,,\n";
        let units = ["tokens", "input_bytes", "others"];
        let trace = CsvTrace::with_units(text.as_bytes(), units).unwrap();
        let costs = |call: TraceCall| (call.cost(), call.cost_of("tokens"), call.cost_of("input_bytes"));
        let found: Vec<_> = trace.map(|call| call.map(costs).map_err(|error| error.to_string())).collect();
        let bad = |line| Err(format!("line {line}: `tokens` must be a whole number, like 3"));
        let named = [Ok((1, Some(20_000), None)), Ok((2, None, Some(7))), Ok((1, Some(0), None)), bad(5), bad(6)];
        assert_eq!(found, named);
        let mistake = |header: &str| CsvTrace::with_units(header.as_bytes(), ["tokens"]).unwrap_err().to_string();
        assert!(mistake("time,tokens,tokens").contains("`tokens` is there twice"));
        let known = "the columns are `time`, `subject`, `cost`, `pause`, `tokens` and `subject:label`";
        assert_eq!(mistake("time,tokns"), format!("line 1: column `tokns` is unknown; {known}"));
    }

    #[test]
    fn a_pause_is_a_number_of_seconds() {
        let text = "time,pause\n1,30\n2,1.5\n3,\n4,0\n5,-1\n6,soon\n7,inf\n";
        let trace = CsvTrace::new(text.as_bytes()).unwrap();
        assert!(trace.has_pauses() && !CsvTrace::new(&b"time\n"[..]).unwrap().has_pauses());
        let millis = |call: TraceCall| call.pause().map(|pause| pause.as_millis());
        let found: Vec<_> = trace.map(|call| call.map(millis).map_err(|error| error.to_string())).collect();
        let bad = |line| Err(format!("line {line}: `pause` must be a number of seconds, like 30 or 1.5"));
        assert_eq!(found, [Ok(Some(30_000)), Ok(Some(1_500)), Ok(None), Ok(None), bad(6), bad(7), bad(8)]);
    }

    #[test]
    fn a_column_in_an_error_is_cut() {
        let error = CsvTrace::new(io::Cursor::new("x".repeat(LINE_BYTES))).unwrap_err().to_string();
        assert!(error.len() < 400, "{error}");
    }

    #[test]
    fn an_open_quote_is_noticed_and_forgotten_with_its_line() {
        let mut splitter = LineSplitter::new();
        assert!(splitter.split("1,\"a\n").is_err());
        assert_eq!(splitter.split("1,a\n").unwrap(), ["1", "a"]);
    }
}
