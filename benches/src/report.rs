//! The report: a table for people, and the same for programs.

use std::path::Path;
use std::{env, fs, io, thread};

use serde::Serialize;

use crate::figure::{Figure, HEAD};
use crate::recorded::Recorded;

/// All figures of one run, and the machine.
#[derive(Serialize)]
pub(crate) struct Report {
    server: String,
    system: String,
    cores: usize,
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn begin(server: String) -> Self {
        let system = format!("{} {}", env::consts::OS, env::consts::ARCH);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { server, system, cores, figures: Vec::new() }
    }

    pub(crate) fn add(&mut self, figures: Vec<Figure>) {
        self.figures.extend(figures);
    }

    /// Returns the table. Its columns are as wide as their widest cell, so that it reads well in a terminal too.
    pub(crate) fn markdown(&self) -> String {
        let rows: Vec<_> = [HEAD.map(str::to_owned)].into_iter().chain(self.figures.iter().map(Figure::row)).collect();
        let widths: Vec<_> = (0..HEAD.len())
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
            .collect();
        let line = |cells: &[String]| {
            let cells: Vec<_> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let table = rows[1..].iter().map(|row| line(row)).collect::<String>();
        format!(
            "Measured in turn with each peer, many short rounds; medians. {}, {}, {} cores.\n\n{}{}{table}",
            self.server,
            self.system,
            self.cores,
            line(&rows[0]),
            line(&rule)
        )
    }

    /// Returns a table of the figures that were recorded before.
    pub(crate) fn beside(&self, recorded: &Recorded) -> String {
        let (mut table, mut above) =
            ("| figure | recorded | now | ratio |\n| --- | --- | --- | --- |\n".to_owned(), "");
        for figure in &self.figures {
            // A dash stands for what the figure above is.
            let name = match figure.what().strip_prefix("— ") {
                Some(rest) => format!("{above}, {rest}"),
                None => figure.what().to_owned(),
            };
            above = if figure.what().starts_with('—') { above } else { figure.what() };
            table.extend(figure.measured().and_then(|measured| recorded.beside(&name, measured)));
        }
        table
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("report.md"), self.markdown())?;
        fs::write(folder.join("report.json"), serde_json::to_string_pretty(self)? + "\n")
    }
}
