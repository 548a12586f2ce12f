//! The figures, measured beside those of other libraries.

use std::path::{PathBuf, absolute};

use crate::server;
use crate::step::{self, Outcome};

/// The option that names a file: the module of redis-cell, which is built from its source.
const REDIS_CELL: &str = "--redis-cell";

/// The group that is measured with a feature of that name, which would change all others.
const WEB: &str = "web";

/// Measures all figures, or the groups with these names.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let (web, others): (Vec<_>, Vec<_>) = words.iter().copied().partition(|word| *word == WEB);
    let names_no_group = others.iter().filter(|word| **word != REDIS_CELL).count() == count_paths(&others);
    step::announce("the server that the figures are measured on");
    let server = server::Server::usual()?;
    if web.is_empty() || !names_no_group {
        // The package alone, so that it is not built with the features of the tests.
        measure("run --release -p tallygate-benches --", &with_absolute_path(&others)?, &server)?;
    }
    if web.is_empty() && !names_no_group {
        return Ok(());
    }
    measure("run --release -p tallygate-benches --features web --", &[WEB.into()], &server)
}

fn measure(cargo: &str, words: &[PathBuf], server: &server::Server) -> Outcome {
    step::run("measure", step::cargo(cargo).args(words).env(server::VARIABLE, &server.binary))
}

/// How many of the words are the path of an option.
fn count_paths(words: &[&str]) -> usize {
    words.windows(2).filter(|pair| pair[0] == REDIS_CELL).count()
}

/// The measurement runs in the root, wherever the command was typed.
fn with_absolute_path(words: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut paths: Vec<_> = words.iter().map(PathBuf::from).collect();
    if let Some(option) = words.iter().position(|word| *word == REDIS_CELL)
        && let Some(path) = paths.get_mut(option + 1)
    {
        *path = absolute(&path).map_err(|error| format!("no path to {}: {error}", path.display()))?;
    }
    Ok(paths)
}
