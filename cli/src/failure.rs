//! Why a command gives no answer, and what it tells a script.

use std::error::Error as _;
use std::io;
use std::process::ExitCode;

use tallygate::{BackendError, BackendErrorKind, Error, ErrorKind};

/// What a command tells a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done; or the answer is yes.
    Done,
    /// The answer is no: denied, mistakes, problems.
    No,
    /// The command cannot be carried out as it is written.
    Usage,
    /// The server cannot be reached, or cannot answer now.
    Away,
    /// The server, or what is stored there, refuses.
    Refused,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Away => 3,
            Exit::Refused => 4,
        })
    }
}

/// Why a command gives no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// `None` where nobody listens any more.
    text: Option<String>,
}

impl Failure {
    /// The command cannot be carried out as it is written.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, text: Some(text.into()) }
    }

    /// What is stored on the server refuses.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, text: Some(text.into()) }
    }

    /// The answer cannot be written. A reader that has closed the stream has what it wants.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { exit: Exit::Done, text: None },
            _ => Self::usage(format!("the answer cannot be written: {error}")),
        }
    }

    /// The same failure, with other names for some things.
    pub(crate) fn with_names(self, names: &[(&str, &str)]) -> Self {
        let renamed = |text| names.iter().fold(text, |text: String, (name, other)| text.replace(name, other));
        Self { text: self.text.map(renamed), ..self }
    }

    /// The same failure of a command that had begun to change something, if it is one of the server.
    pub(crate) fn amid_changes(self) -> Self {
        match (self.exit, self.text) {
            (Exit::Away | Exit::Refused, Some(text)) => Self {
                text: Some(format!(
                    "{text}; part of it may have been changed already, and the command can be repeated"
                )),
                ..self
            },
            (_, text) => Self { text, ..self },
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self { exit: exit_of(error.kind()), text: Some(error.to_string()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let backend = error.source().and_then(|source| source.downcast_ref::<BackendError>());
        let exit = match (error.kind(), backend) {
            (ErrorKind::Backend, Some(cause)) => exit_of(cause.kind()),
            _ => Exit::Usage,
        };
        Self { exit, text: Some(error.to_string()) }
    }
}

fn exit_of(kind: BackendErrorKind) -> Exit {
    match kind {
        BackendErrorKind::Away => Exit::Away,
        _ => Exit::Refused,
    }
}
