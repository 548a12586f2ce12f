//! `tallygate check`: the mistakes in files of limits.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tallygate::config::{ConfigError, Mistake, Policies};

use crate::failure::{Exit, Failure};
use crate::number::counted;
use crate::output::Output;

/// Look for mistakes in files of limits, before a program applies them
///
/// All mistakes of all files are printed, in the words in which the program would report them, as file:line:column. What
/// only shows beside the policies of the program, like another `key`, is found when the program applies the file.
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

/// What is in a file.
type Checked = Result<Policies, ConfigError>;

impl CheckCommand {
    pub(crate) fn run(&self) -> Result<Output, Failure> {
        let checked = self.files.iter().map(|file| Ok((file, read(file)?))).collect::<Result<Vec<_>, Failure>>()?;
        let text: String = checked.iter().map(|(file, checked)| text_of(file, checked)).collect();
        let files: Vec<_> = checked.iter().map(|(file, checked)| json_of(file, checked)).collect();
        let is_sound = checked.iter().all(|(_, checked)| checked.is_ok());
        let exit = if is_sound { Exit::Done } else { Exit::No };
        Ok(Output::done(text, json!({ "files": files })).with_exit(exit))
    }
}

/// Reads a file, and finds what is wrong in it.
fn read(file: &Path) -> Result<Checked, Failure> {
    let text = text(file).map_err(|error| Failure::unreadable(&file.display().to_string(), &error))?;
    Ok(Policies::from_toml(&text))
}

/// Reads a file that has no mistakes.
pub(crate) fn read_sound(file: &Path) -> Result<Policies, Failure> {
    read(file)?
        .map_err(|error| Failure::usage(format!("mistakes in the limits\n{}", mistakes(file, &error).trim_end())))
}

fn text(file: &Path) -> io::Result<String> {
    if file.as_os_str() != "-" {
        return fs::read_to_string(file);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

fn text_of(file: &Path, checked: &Checked) -> String {
    match checked {
        Ok(policies) => {
            format!("{}: {}, no mistakes\n", file.display(), counted(policies.names().count() as u64, "policy"))
        }
        Err(error) => mistakes(file, error),
    }
}

/// Returns a line for each mistake, in the form in which editors find the place.
fn mistakes(file: &Path, error: &ConfigError) -> String {
    let line = |mistake: &Mistake| {
        format!("{}:{}:{}: {}\n", file.display(), mistake.line(), mistake.column(), mistake.message())
    };
    error.mistakes().iter().map(line).collect()
}

fn json_of(file: &Path, checked: &Checked) -> Value {
    let mistake =
        |mistake: &Mistake| json!({ "line": mistake.line(), "column": mistake.column(), "message": mistake.message() });
    let mistakes = checked.as_ref().err().map(ConfigError::mistakes).unwrap_or_default();
    let policies: Vec<_> = checked.iter().flat_map(Policies::names).collect();
    json!({
        "file": file.display().to_string(),
        "policies": policies,
        "mistakes": mistakes.iter().map(mistake).collect::<Vec<_>>(),
    })
}
