//! `tallygate simulate`: what limits would have decided.

mod answer;
mod picture;

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use indicatif::ProgressBarIter;
use tallygate::admin::__shared as shared;
use tallygate::simulation::{Comparison, CsvTrace, Simulation, TraceCall, TraceError, TraceErrorKind};
use tallygate::{Error, Policy};

use self::picture::{Picture, Verdict};
use crate::commands::check::read_sound;
use crate::counts::CountOptions;
use crate::duration;
use crate::failure::Failure;
use crate::output::{Output, printable};
use crate::progress::ProgressBar;

/// Decide calls of the past by the limits of a file, with the engine that decides real calls
///
/// The calls are text in columns (CSV) whose first line names the columns: `time` (RFC 3339, or seconds since 1970), `subject`
/// (any text; without it, all calls are of one subject), `cost` (1 unless it is given), `subject:KEY` for rules with a
/// `key` of their own, units that the rules count, like `tokens` (where it is empty, the call names no cost, and is denied once
/// nothing is left; 0 is admitted even then), and `pause` (for how many seconds the other side has asked to pause in its answer).
/// They are in the order of time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateCommand {
    /// The file with the limits
    limits: PathBuf,

    /// The name of the policy
    policy: String,

    /// The file with the calls; without it, or with `-`, stdin
    #[arg(value_name = "CALLS")]
    calls: Option<PathBuf>,

    /// Compare with the limits of this file, which would take the place of the first
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,

    /// Decide as Redis does where the program takes calls ahead for so long, as its `prefetch` says
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    prefetch: Option<Duration>,

    #[command(flatten)]
    counts: CountOptions,

    /// Draw what was decided over time, as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// In the picture, also draw what each rule denied, apart
    #[arg(long, requires = "svg")]
    by_rule: bool,

    /// Leave out rows that are no calls, and say so, instead of stopping at the first
    #[arg(long)]
    skip_bad_rows: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallygate simulate limits.toml sms.send < calls.csv
  tallygate simulate limits.toml sms.send calls.csv --svg decided.svg
  tallygate simulate limits.toml sms.send calls.csv --svg decided.svg --by-rule
  tallygate simulate limits.toml sms.send calls.csv --compare other.toml
  tallygate simulate plans.toml search calls.csv --plan paid
  tallygate simulate tenants.toml tenant tenants.csv --prefetch 1s
  tallygate simulate limits.toml sms.send calls.csv --skip-bad-rows --json";

impl SimulateCommand {
    pub(crate) fn run(&self) -> Result<Output, Failure> {
        let policy = self.policy_of(&self.limits)?;
        let other = self.compare.as_deref().map(|file| self.policy_of(file)).transpose()?;
        let (progress, calls) = self.open()?;
        let mut rows = Rows::new(self.skip_bad_rows, progress);
        let units = iter::once(&policy).chain(&other).flat_map(Policy::units);
        let trace = CsvTrace::with_units(calls, units).map_err(|mistake| self.mistaken(&mistake))?;
        let pausable =
            |policy: Policy, file| if trace.has_pauses() { made_pausable(&policy, file) } else { Ok(policy) };
        let policy = pausable(policy, self.limits.as_path())?;
        let other = other.zip(self.compare.as_deref()).map(|(other, file)| pausable(other, file)).transpose()?;
        match other {
            None => self.simulate(&policy, trace, &mut rows),
            Some(other) => self.compare(&policy, &other, trace, &mut rows),
        }
    }

    fn simulate(&self, policy: &Policy, trace: Trace, rows: &mut Rows) -> Result<Output, Failure> {
        let mut simulation = Simulation::new(policy);
        self.decide([policy], trace, rows, |call| Ok([Verdict::of(&simulation.call(call)?)]))?;
        Ok(answer::of_one(&self.policy, simulation.summary(), rows.skipped()))
    }

    fn compare(&self, policy: &Policy, other: &Policy, trace: Trace, rows: &mut Rows) -> Result<Output, Failure> {
        let mut comparison = Comparison::new(policy, other);
        self.decide([policy, other], trace, rows, |call| {
            let (before, after) = comparison.call(call)?;
            Ok([Verdict::of(&before), Verdict::of(&after)])
        })?;
        Ok(answer::of_two(&self.policy, &self.file_names(), &comparison, rows.skipped()))
    }

    /// Decides all calls by each policy, and draws the decisions.
    fn decide<const LIMITS: usize>(
        &self,
        policies: [&Policy; LIMITS],
        trace: Trace,
        rows: &mut Rows,
        mut decide: impl FnMut(&TraceCall) -> Result<[Verdict; LIMITS], TraceError>,
    ) -> Result<(), Failure> {
        let mut picture = Picture::new(self.file_names().into_iter().zip(policies), self.by_rule);
        for call in trace {
            let decided = rows.decide(call, &mut decide).map_err(|mistake| self.mistaken(&mistake))?;
            if let Some((at, decided)) = decided {
                picture.add(at, &decided);
            }
        }
        let Some(file) = &self.svg else { return Ok(()) };
        let drawn = picture.svg();
        fs::write(file, drawn).map_err(|error| Failure::usage(format!("{} cannot be written: {error}", file.display())))
    }

    fn policy_of(&self, file: &Path) -> Result<Policy, Failure> {
        let policies = read_sound(file)?;
        let name = &self.policy;
        let policy = self.counts.asked().policy(&policies, name).map_err(|error| of_file(file, &error))?;
        let policy = policy.ok_or_else(|| {
            let (file, known): (_, Vec<_>) = (file.display(), policies.names().collect());
            Failure::usage(if known.contains(&&**name) {
                format!("{file} has no rules of the policy `{name}`")
            } else {
                format!("{file} has no policy `{name}`{}", shared::remedy("policy", name, known))
            })
        })?;
        let Some(ahead) = self.prefetch else { return Ok(policy) };
        let taken_ahead = policy.to_builder().prefetch(ahead).build();
        taken_ahead.map_err(|error| of_file(file, &error))
    }

    fn open(&self) -> Result<(ProgressBar, Calls), Failure> {
        let (input, length): (Box<dyn Read>, _) = match self.calls.as_deref().filter(|file| file.as_os_str() != "-") {
            Some(file) => {
                let opened = File::open(file).map_err(|error| Failure::unreadable(&file.display().to_string(), &error));
                let opened = opened?;
                // A pipe has no length.
                let length = opened.metadata().ok().map(|known| known.len()).filter(|&length| length > 0);
                (Box::new(opened), length)
            }
            None if io::stdin().is_terminal() => {
                return Err(Failure::usage("there are no calls; name their file, or write `< calls.csv`"));
            }
            None => (Box::new(io::stdin()), None),
        };
        Ok(ProgressBar::of_input("calls", input, length))
    }

    /// Returns the names of the files, which head their results.
    fn file_names(&self) -> Vec<String> {
        iter::once(&self.limits).chain(&self.compare).map(|file| file.display().to_string()).collect()
    }

    fn mistaken(&self, mistake: &TraceError) -> Failure {
        let trace = self.calls.as_ref().map_or("the calls".to_owned(), |file| file.display().to_string());
        let remedy = if mistake.line().is_some_and(|line| line > 1) && !self.skip_bad_rows {
            "; `--skip-bad-rows` leaves out such rows"
        } else {
            ""
        };
        Failure::usage(format!("{trace}: {mistake}{remedy}"))
    }
}

/// Lets the policy be paused: which can be is a part of the program, and not of its files.
fn made_pausable(policy: &Policy, file: &Path) -> Result<Policy, Failure> {
    policy.to_builder().pausable().build().map_err(|error| of_file(file, &error))
}

fn of_file(file: &Path, error: &Error) -> Failure {
    Failure::usage(format!("{}: {error}", file.display()))
}

/// The calls of a file, whose bytes are counted as they are read.
type Calls = ProgressBarIter<Box<dyn Read>>;

type Trace = CsvTrace<Calls>;

/// The most mistaken rows that are reported one by one.
const MOST_NAMED: u64 = 10;

/// The rows of a file of calls, of which some may be mistaken.
struct Rows {
    skips: bool,
    skipped: u64,
    progress: ProgressBar,
}

impl Rows {
    /// With `skips`, mistaken rows are skipped. Without it, the first one is an error.
    fn new(skips: bool, progress: ProgressBar) -> Self {
        Self { skips, skipped: 0, progress }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Decides the call of a row, and returns its time and the decision; `None` if the row is skipped.
    ///
    /// # Errors
    ///
    /// The row is no call, or cannot be decided, and is not skipped.
    fn decide<T>(
        &mut self,
        row: Result<TraceCall, TraceError>,
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
