//! `tallygate check`: the mistakes in files of limits.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tallygate::admin::__shared as shared;
use tallygate::admin::Registered;
use tallygate::config::{ConfigError, Mistake, Policies};

use crate::connection::Connection;
use crate::failure::{Exit, Failure};
use crate::fleet::Fleet;
use crate::number::counted;
use crate::output::Output;

/// Look for mistakes in files of limits, before a program applies them
///
/// All mistakes of all files are printed, in the words in which the program would report them, as file:line:column. With a
/// `--url`, the files are also compared with the policies that processes have used within a week: a name that none of them has
/// is a mistake, as is another `key`. Without it, such mistakes are found when the program applies the file. Values of requests
/// that a `key` shows, like `{@user}`, are compared with those that the file lists (`values = ["user"]`), and plans with its `plans`;
/// without these lists, there are warnings.
#[allow(clippy::doc_markdown, reason = "it is the text of the help")]
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckCommand {
    /// The files; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallygate check limits.toml
  tallygate check limits.toml other.toml --json
  tallygate check - < limits.toml";

/// The most bytes that are read: one more than a file may have, so that a longer file is noticed.
const MOST_BYTES: u64 = shared::FILE_BYTES as u64 + 1;

struct Checked<'f> {
    file: &'f Path,
    policies: Vec<String>,
    mistakes: Vec<Mistake>,
    /// Possible mistakes, which only the program can judge.
    warnings: Vec<Mistake>,
    /// The number of listed policies that the file was compared with, if there are any.
    listed: Option<usize>,
}

impl CheckCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let read = self.files.iter().map(|file| Ok((&**file, read(file)?))).collect::<Result<Vec<_>, Failure>>()?;
        let fleet = if connection.is_known() { Some(Fleet::connect(connection).await?) } else { None };
        // An empty list means another prefix, or a server that has lost its data: each name would be a mistake.
        let listed = fleet.as_ref().map(Fleet::registered).filter(|listed| !listed.policies().is_empty());
        let checked: Vec<_> = read.into_iter().map(|(file, read)| Checked::new(file, read, listed)).collect();
        let mut text: String = checked.iter().map(Checked::text).collect();
        if let (Some(fleet), None) = (&fleet, listed) {
            text.extend(["the files are compared with nothing: ", &fleet.nothing_listed(), "\n"]);
        }
        let files: Vec<_> = checked.iter().map(Checked::json).collect();
        let is_sound = checked.iter().all(|checked| checked.mistakes.is_empty());
        let exit = if is_sound { Exit::Done } else { Exit::No };
        let json = json!({ "files": files, "compared_with": listed.map(|listed| listed.policies().len()) });
        Ok(Output::done(text, json).with_exit(exit))
    }
}

impl<'f> Checked<'f> {
    fn new(file: &'f Path, read: Result<Policies, ConfigError>, listed: Option<&Registered>) -> Self {
        let (policies, mistakes, warnings) = match read {
            Ok(policies) => {
                let mistakes = listed.map(|listed| listed.mistakes_in(&policies)).unwrap_or_default();
                let is_known = |warning: &Mistake| mistakes.iter().any(|mistake| is_at(mistake, warning));
                let warnings = policies.unlisted().into_iter().filter(|warning| !is_known(warning)).collect();
                (policies.names().map(str::to_owned).collect(), mistakes, warnings)
            }
            Err(error) => (Vec::new(), error.mistakes().to_vec(), Vec::new()),
        };
        Self { file, policies, mistakes, warnings, listed: listed.map(|listed| listed.policies().len()) }
    }

    fn text(&self) -> String {
        let mut text = lines(self.file, &self.mistakes, "");
        text += &lines(self.file, &self.warnings, "warning: ");
        if !self.mistakes.is_empty() {
            return text;
        }
        let policies = counted(self.policies.len() as u64, "policy");
        let beside = self.listed.map(|listed| format!(" beside {} in use", counted(listed as u64, "policy")));
        text + &format!("{}: {policies}, no mistakes{}\n", self.file.display(), beside.unwrap_or_default())
    }

    fn json(&self) -> Value {
        let mistake = |mistake: &Mistake| json!({ "line": mistake.line(), "column": mistake.column(), "message": mistake.message() });
        json!({
            "file": self.file.display().to_string(),
            "policies": self.policies,
            "mistakes": self.mistakes.iter().map(mistake).collect::<Vec<_>>(),
            "warnings": self.warnings.iter().map(mistake).collect::<Vec<_>>(),
        })
    }
}

fn is_at(mistake: &Mistake, other: &Mistake) -> bool {
    (mistake.line(), mistake.column()) == (other.line(), other.column())
}

/// Reads a file. The inner error has its mistakes.
fn read(file: &Path) -> Result<Result<Policies, ConfigError>, Failure> {
    let text = text(file).map_err(|error| Failure::unreadable(&file.display().to_string(), &error))?;
    Ok(Policies::from_toml(&text).and_then(|policies| policies.require_not_empty().map(|()| policies)))
}

/// Reads a file, and fails if it has mistakes.
pub(crate) fn read_sound(file: &Path) -> Result<Policies, Failure> {
    read(file)?.map_err(|error| {
        Failure::usage(format!("mistakes in the limits\n{}", lines(file, error.mistakes(), "").trim_end()))
    })
}

fn text(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().take(MOST_BYTES).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    }
    // A file that is too long is refused, so it does not matter where the text was cut.
    if bytes.len() as u64 == MOST_BYTES {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Returns one line for each mistake, as `file:line:column: message`, which editors understand.
fn lines(file: &Path, mistakes: &[Mistake], level: &str) -> String {
    let line = |mistake: &Mistake| {
        format!("{}:{}:{}: {level}{}\n", file.display(), mistake.line(), mistake.column(), mistake.message())
    };
    mistakes.iter().map(line).collect()
}
