//! One line of a text in columns.

use csv_core::{ReadRecordResult, Reader};

use super::columns::LineMistake;

/// Splits lines into their fields, one line at a time: a call is one line, so that its number is known.
#[derive(Debug)]
pub(super) struct LineSplitter {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl LineSplitter {
    pub(super) fn new() -> Self {
        Self { reader: Reader::new(), text: Vec::new(), ends: Vec::new() }
    }

    /// Returns the fields of a line that ends with a newline, without white space around them.
    ///
    /// # Errors
    ///
    /// A quote is open at its end.
    pub(super) fn split(&mut self, line: &str) -> Result<Vec<&str>, LineMistake> {
        self.reader.reset();
        // No field takes more room without its quotes, and each but the last ends with a comma.
        self.text.resize(line.len(), 0);
        self.ends.resize(line.len() + 1, 0);
        let (result, _, _, fields) = self.reader.read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        if result != ReadRecordResult::Record {
            return Err("a quote is open at its end; close it, as each call is one line".into());
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
    fn an_open_quote_is_noticed_and_forgotten_with_its_line() {
        let mut splitter = LineSplitter::new();
        assert!(splitter.split("1,\"a\n").is_err());
        assert_eq!(splitter.split("1,a\n").unwrap(), ["1", "a"]);
    }
}
