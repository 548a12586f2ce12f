//! What is asked of a script about requests, and what its answer says.

use super::pack;
use super::plain::is_plain;
use super::run::Script;
use super::windows;
use super::wire::{self, Reply};
use crate::error::BackendError;
use crate::store::redis::script::Scripts;
use crate::store::request::Request;

/// What is asked of a script.
pub(crate) struct ScriptQuestion<'a> {
    pub(crate) script: &'a Script,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) form: Form,
}

/// The form of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Any,
    Windows,
    OneOfWindows,
}

impl<'a> ScriptQuestion<'a> {
    /// What to ask about these requests, if that is the server's time.
    pub(crate) fn about(requests: &[Request<'_>], scripts: &'a Scripts, now_us: u64) -> Self {
        if requests.is_empty() || !requests.iter().all(|request| is_plain(*request)) {
            let arguments = requests.iter().map(|request| pack::request(request, now_us)).collect();
            return Self { script: &scripts.decide, arguments, form: Form::Any };
        }
        let rules = windows::rules(requests);
        let arguments = windows::pack(requests, rules);
        match requests {
            [_] => Self { script: scripts.one(rules), arguments, form: Form::OneOfWindows },
            _ => Self { script: scripts.many(rules), arguments, form: Form::Windows },
        }
    }
}

impl Form {
    /// Reads the answer to these requests: the server's time and a reply to each.
    pub(crate) fn read(self, answer: &[u8], requests: &[Request<'_>]) -> Result<(u64, Vec<Reply>), BackendError> {
        let read = match (self, requests) {
            (Self::OneOfWindows, [request]) => windows::read_one(answer, request),
            (Self::Any, _) => wire::read(answer, requests),
            _ => windows::read(answer, requests),
        };
        read.ok_or_else(unknown_shape)
    }
}

pub(crate) fn unknown_shape() -> BackendError {
    BackendError::new("redis: the script's reply has an unknown shape")
}
