//! Text in columns.

use std::io::{self, IsTerminal};

use crossterm::terminal;
use unicode_width::UnicodeWidthStr as _;

/// The indent of cells that stand below the first cell of their line.
const INDENT: &str = "    ";

#[derive(Debug, Default)]
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Adds a line. Newlines in cells are escaped, so that no name begins a line of its own.
    pub(crate) fn push(&mut self, cells: impl IntoIterator<Item: Into<String>>) {
        let in_one_line = |cell: String| if cell.contains('\n') { cell.replace('\n', "\\n") } else { cell };
        self.rows.push(cells.into_iter().map(Into::into).map(in_one_line).collect());
    }

    /// Returns the lines, each with a newline. Columns that are empty in all lines are left out.
    ///
    /// On a terminal that is too narrow, the cells of a line stand below each other. Piped text stays as it is.
    pub(crate) fn text(&self) -> String {
        let terminal = io::stdout().is_terminal().then(|| terminal::size().ok()).flatten();
        self.text_within(terminal.map_or(0, |(columns, _)| usize::from(columns)))
    }

    /// Returns the lines for a terminal of that width. 0 means that it is not known, as some terminals report it.
    fn text_within(&self, columns: usize) -> String {
        let widths = self.widths();
        let lines: Vec<_> = self.rows.iter().map(|row| line(row, &widths)).collect();
        if columns == 0 || lines.iter().all(|line| line.trim_end().width() <= columns) {
            return lines.concat();
        }
        self.rows.iter().map(|row| block(row, columns)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        (0..columns).map(|column| width(column).unwrap_or_default()).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, &column) in row.iter().zip(widths).filter(|(_, column)| **column > 0) {
        line.push_str(cell);
        line.push_str(&" ".repeat(column.saturating_sub(cell.width()) + 3));
    }
    format!("{}\n", line.trim_end())
}

/// Returns the first cell of a line, and the others below it, each at most as wide as the terminal.
fn block(row: &[String], columns: usize) -> String {
    let mut cells = row.iter().filter(|cell| !cell.is_empty());
    let mut block = cells.next().map(|first| format!("{first}\n")).unwrap_or_default();
    for cell in cells {
        let mut line = INDENT.to_owned();
        for part in parts(cell) {
            if line.len() > INDENT.len() && line.width() + 1 + part.width() > columns {
                block.push_str(&line);
                block.push('\n');
                INDENT.clone_into(&mut line);
            }
            if line.len() > INDENT.len() {
                line.push(' ');
            }
            line.push_str(part);
        }
        block.push_str(&line);
        block.push('\n');
    }
    block
}

/// Returns the pieces of a cell that stay on one line: the parts of a list, each with its dot, or words.
fn parts(cell: &str) -> impl Iterator<Item = &str> {
    let separator = if cell.contains(" · ") { "· " } else { " " };
    cell.split_inclusive(separator).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_narrow_terminal_cells_stand_below_each_other() {
        let mut table = TextTable::default();
        table.push(["sms.send", "sms:{phone}", "1 per 1m · 5 per 1h · 10 per 1d as daily"]);
        table.push(["mail", "", "1 per 1h"]);
        for wide in [80, 0] {
            assert!(table.text_within(wide).starts_with("sms.send   sms:{phone}   1 per 1m"));
        }
        let narrow =
            "sms.send\n    sms:{phone}\n    1 per 1m · 5 per 1h ·\n    10 per 1d as daily\nmail\n    1 per 1h\n";
        assert_eq!(table.text_within(30), narrow);
    }

    #[test]
    fn cells_of_a_column_begin_at_one_place() {
        let mut table = TextTable::default();
        table.push(["0", "1 per 1m", "", "0 left"]);
        table.push(["10", "短信", "", "3 left"]);
        table.push(["x\ny"]);
        assert_eq!(table.text().lines().last(), Some("x\\ny"));
        table.rows.pop();
        table.push(["x"]);
        assert_eq!(table.text(), "0    1 per 1m   0 left\n10   短信       3 left\nx\n");
    }
}
