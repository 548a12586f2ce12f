//! The failures of commands, and the exit codes.

use std::error::Error as _;
use std::io;
use std::process::ExitCode;

use tallygate::{BackendError, BackendErrorKind, Error, ErrorKind, Setting};

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command is done, or the answer is yes.
    Done,
    /// The answer is no: denied, mistakes, problems.
    No,
    /// The command cannot be carried out as it is written.
    Usage,
    /// The server cannot be reached, or cannot answer now.
    Away,
    /// The server refuses, or what is stored there cannot be used.
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

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// `None` if the reader of the output is gone.
    text: Option<String>,
}

impl Failure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, text: Some(text.into()) }
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, text: Some(text.into()) }
    }

    pub(crate) fn unreadable(file: &str, error: &io::Error) -> Self {
        Self::usage(format!("{file} cannot be read: {error}"))
    }

    /// The answer cannot be written. If its reader has closed the stream, it has what it wants.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { exit: Exit::Done, text: None },
            _ => Self::usage(format!("the answer cannot be written: {error}")),
        }
    }

    /// Returns an error of a change, with the note that it may have been made, if the server has failed.
    pub(crate) fn amid_changes(error: impl Into<Self>) -> Self {
        let mut failure = error.into();
        if let (Exit::Away | Exit::Refused, Some(text)) = (failure.exit, &mut failure.text) {
            text.push_str("; part of it may have been changed already, and the command can be repeated");
        }
        failure
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
        Self { exit, text: Some(text(&error)) }
    }
}

/// Returns the text of an error, with options in place of the settings of the library.
fn text(error: &Error) -> String {
    let Some(named) = error.named_setting() else { return error.to_string() };
    let (option, remedy) = match named.setting() {
        Setting::Prefix => ("`--prefix`", ", like `--prefix shop`"),
        Setting::Deadline => ("`--timeout`", ", like `--timeout 2s`"),
        Setting::Secret => ("`--secret-file`", "; name the file with the secret of the programs"),
        Setting::Tls => ("a file of certificates is given, but `--url`", "; write `rediss://host:port`"),
        Setting::Ca => ("`--ca-file`", "; give a file of certificates as PEM"),
        Setting::ClientCertificate => ("`--cert-file`", "; give files as PEM"),
        Setting::PrivateKey => ("`--key-file`", "; give files as PEM"),
        Setting::KeyPair => ("the certificate of `--cert-file`", "; write the pair"),
        Setting::Subject => {
            let whole = "write the whole subject by `--subject`, or by `--on` for rules with a key of their own, as `top` \
                         prints it";
            (whole, "")
        }
        _ => return error.to_string(),
    };
    let (before, after) = (named.before(), named.after());
    // An option at the end is a remedy itself.
    let remedy = if after.is_empty() { "" } else { remedy };
    format!("{before}{option}{after}{remedy}")
}

fn exit_of(kind: BackendErrorKind) -> Exit {
    match kind {
        BackendErrorKind::Away => Exit::Away,
        _ => Exit::Refused,
    }
}
