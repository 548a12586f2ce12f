//! The figures, measured beside those of other libraries.

use std::path::{PathBuf, absolute};

use crate::server;
use crate::step::{self, Outcome};
use crate::world;

/// The options that name a file: the module of redis-cell, which is built from its source, and recorded figures.
const OF_FILES: [&str; 2] = ["--redis-cell", "--against"];

/// The group that is measured with a feature of that name, which would change all others.
const WEB: &str = "web";

/// The figures of calls to a partner, which a simulated world plays.
const PARTNER: &str = "partner";

/// Measures all figures, or the groups with these names.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let (mut web, mut partner, mut groups, mut options) = (false, false, Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            WEB => web = true,
            PARTNER => partner = true,
            // The measurement runs in the root, wherever the command was typed.
            option if OF_FILES.contains(&option) => {
                let path = absolute(words.next().unwrap_or(&"")).map_err(|error| format!("{option}: {error}"))?;
                options.extend([PathBuf::from(option), path]);
            }
            group => groups.push(PathBuf::from(group)),
        }
    }
    let all = !web && !partner && groups.is_empty();
    if all || !groups.is_empty() {
        // The package alone, so that it is not built with the features of the tests.
        measure("run --release -p tallygate-benches --", &[groups, options].concat())?;
    }
    if all || web {
        measure("run --release -p tallygate-benches --features web --", &[WEB.into()])?;
    }
    if all || partner {
        world::run(&[PARTNER])?;
    }
    Ok(())
}

fn measure(cargo: &str, words: &[PathBuf]) -> Outcome {
    step::announce("the server that the figures are measured on");
    let server = server::Server::usual()?;
    step::run("measure", step::cargo(cargo).args(words).env(server::VARIABLE, &server.binary))
}
