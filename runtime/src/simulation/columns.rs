//! The columns of a trace that is text.

use std::borrow::Cow;

use super::call::Call;
use super::time;
use crate::subject::Subject;

/// Begins the name of a column with another subject; the rest is its label.
const LABELLED: &str = "subject:";

const KNOWN: &str = "the columns are `time`, `subject`, `cost` and `subject:label`";

/// What is wrong with a line, and the remedy.
pub(super) type LineMistake = Cow<'static, str>;

/// Where each value of a call is in its line.
#[derive(Debug, Default)]
pub(super) struct Columns {
    time: usize,
    subject: Option<usize>,
    cost: Option<usize>,
    others: Vec<(Box<str>, usize)>,
    count: usize,
}

impl Columns {
    /// Reads the names of the columns.
    pub(super) fn from_header(header: &[&str]) -> Result<Self, LineMistake> {
        let mut columns = Self { count: header.len(), ..Self::default() };
        let mut time = None;
        for (index, &name) in header.iter().enumerate() {
            if header.iter().take(index).any(|other| *other == name) {
                return Err(format!("column `{name}` is there twice; remove one").into());
            }
            match (name, name.strip_prefix(LABELLED)) {
                ("time", _) => time = Some(index),
                ("subject", _) => columns.subject = Some(index),
                ("cost", _) => columns.cost = Some(index),
                (_, Some(label)) => columns.others.push((label.into(), index)),
                (_, None) => return Err(format!("column `{name}` is unknown; {KNOWN}").into()),
            }
        }
        columns.time = time.ok_or_else(|| format!("column `time` is missing; {KNOWN}"))?;
        Ok(columns)
    }

    /// Reads a call.
    pub(super) fn call(&self, fields: &[&str]) -> Result<Call, LineMistake> {
        if fields.len() != self.count {
            let (found, named) = (fields.len(), self.count);
            return Err(format!("fields: {found} found, {named} named in the header; give each column a field").into());
        }
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let at = time::parse(field(self.time))
            .ok_or("`time` must be like 2027-01-15T08:00:00Z, or seconds since 1970 like 1800000000.25")?;
        let subject = self.subject.map_or_else(Subject::everyone, |index| Subject::of(field(index)));
        let cost = match self.cost.map_or("", field) {
            "" => 1,
            cost => cost.parse().map_err(|_| "`cost` must be a whole number, like 3")?,
        };
        let call = Call::new(at, subject).with_cost(cost);
        Ok(self.others.iter().fold(call, |call, (label, index)| call.with_subject(label, Subject::of(field(*index)))))
    }
}
