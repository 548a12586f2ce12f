//! Text in columns.

/// Lines whose cells stand in columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a line.
    pub(crate) fn push(&mut self, cells: impl IntoIterator<Item: Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the lines, each with a newline. Columns that are empty in all lines are left out.
    pub(crate) fn text(&self) -> String {
        let widths = self.widths();
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        (0..columns).map(|column| width(column).unwrap_or_default()).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, &column) in row.iter().zip(widths).filter(|(_, column)| **column > 0) {
        line.push_str(cell);
        line.push_str(&" ".repeat(column.saturating_sub(width(cell)) + 3));
    }
    format!("{}\n", line.trim_end())
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_column_begin_at_one_place() {
        let mut table = Table::default();
        table.push(["0", "1 per 1m", "", "0 left"]);
        table.push(["10", "é", "", "3 left"]);
        table.push(["x"]);
        assert_eq!(table.text(), "0    1 per 1m   0 left\n10   é          3 left\nx\n");
    }
}
