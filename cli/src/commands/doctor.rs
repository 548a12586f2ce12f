//! `tallygate doctor`: checks the servers.

use clap::Args;
use serde_json::{Value, json};
use tallygate::admin::{Finding, Level, ServerReport};

use crate::connection::Connection;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::table::TextTable;

/// Look at the servers: version, eviction, memory, persistence, clocks, latency, permissions, and how they decide known calls
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorCommand {
    /// Also fail for warnings
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallygate doctor
  tallygate doctor --strict --json

The exit code is 1 if there is a problem.";

impl DoctorCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let reports = connection.connect().await?.inspect().await?;
        let worst = reports.iter().map(ServerReport::level).max().unwrap_or(Level::Ok);
        let is_sound = worst == Level::Ok || worst == Level::Warning && !self.strict;
        let exit = if is_sound { Exit::Done } else { Exit::No };
        let text: Vec<_> = reports.iter().map(text_of).collect();
        let servers: Vec<_> = reports.iter().map(json_of).collect();
        Ok(Output::done(text.join("\n"), json!({ "level": worst.as_str(), "servers": servers })).with_exit(exit))
    }
}

fn text_of(report: &ServerReport) -> String {
    let mut table = TextTable::default();
    for finding in report.findings() {
        table.push([finding.level().to_string(), finding.topic().to_owned(), finding.to_string()]);
    }
    format!("{}\n{}", report.server(), table.text())
}

fn json_of(report: &ServerReport) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "topic": finding.topic(),
            "level": finding.level().as_str(),
            "text": finding.text(),
            "remedy": finding.remedy(),
        })
    };
    json!({ "server": report.server(), "findings": report.findings().iter().map(finding).collect::<Vec<_>>() })
}
