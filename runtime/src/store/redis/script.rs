//! The scripts that decide, refund, keep leases and ban: their arguments and their answers.

pub(super) mod pack;
pub(super) mod run;
pub(super) mod windows;
pub(super) mod wire;
pub(super) mod work;

use std::sync::{Arc, OnceLock};

use tallygate_lua as lua;

use self::run::Script;
use self::windows::{is_plain, is_plain_together};
use self::wire::Reply;
use crate::call::Call;
use crate::clock::Clock;
use crate::error::BackendError;

#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) decide: Script,
    pub(crate) refund: Script,
    pub(crate) lease: Script,
    pub(crate) ban: Script,
    clock: Clock,
    /// The scripts for windows, by their number of rules. Each is made when a call first needs it.
    one: [OnceLock<Script>; lua::MAX_PLAIN_RULES + 1],
    many: [OnceLock<Script>; lua::MAX_PLAIN_RULES + 1],
    together: [OnceLock<Script>; lua::MAX_TOGETHER_RULES + 1],
}

/// The scripts are shared by all servers, because a cluster may have many.
static SHARED: OnceLock<Arc<Scripts>> = OnceLock::new();

impl Scripts {
    /// Returns the scripts that use this clock: the server's, unless a test sets it.
    pub(crate) fn by(clock: &Clock) -> Arc<Self> {
        let new = || Arc::new(Self::new(clock));
        if clock.manual_us().is_some() { new() } else { Arc::clone(SHARED.get_or_init(new)) }
    }

    fn new(clock: &Clock) -> Self {
        let script = |text| Script::new(text, clock.clone());
        Self {
            decide: script(lua::DECIDE),
            refund: script(lua::REFUND),
            lease: script(lua::LEASE),
            ban: script(lua::BAN),
            clock: clock.clone(),
            one: [const { OnceLock::new() }; lua::MAX_PLAIN_RULES + 1],
            many: [const { OnceLock::new() }; lua::MAX_PLAIN_RULES + 1],
            together: [const { OnceLock::new() }; lua::MAX_TOGETHER_RULES + 1],
        }
    }

    /// Returns the script for one request that has only sliding windows, at most this number of them.
    pub(crate) fn one(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_PLAIN_RULES);
        self.one[rules].get_or_init(|| Script::unversioned(&lua::windows_alone(rules), self.clock.clone()))
    }

    /// Returns the script for several such requests, each with at most this number of rules.
    pub(crate) fn many(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_PLAIN_RULES);
        self.many[rules].get_or_init(|| Script::unversioned(&lua::windows(rules), self.clock.clone()))
    }

    /// Returns the script for requests of several subjects, each with at most this number of sliding windows.
    pub(crate) fn together(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_TOGETHER_RULES);
        self.together[rules].get_or_init(|| Script::unversioned(&lua::windows_together(rules), self.clock.clone()))
    }
}

pub(crate) struct ScriptQuestion<'a> {
    pub(crate) script: &'a Script,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) form: Form,
}

#[derive(Clone, Copy)]
pub(crate) enum Form {
    Any,
    /// Of requests with at most this number of windows for each subject.
    Windows(usize),
}

impl<'a> ScriptQuestion<'a> {
    /// Builds the question about these requests. `now_us` is the time of the server.
    pub(crate) fn about(requests: &[Call<'_>], scripts: &'a Scripts, now_us: u64) -> Self {
        let all = |kind: fn(Call<'_>) -> bool| !requests.is_empty() && requests.iter().all(|request| kind(*request));
        let rules = windows::rules(requests);
        let form = Form::Windows(rules);
        if all(is_plain) {
            let script = if requests.len() == 1 { scripts.one(rules) } else { scripts.many(rules) };
            return Self { script, arguments: windows::pack(requests, rules), form };
        }
        if all(is_plain_together) {
            return Self { script: scripts.together(rules), arguments: windows::pack_together(requests, rules), form };
        }
        let arguments = requests.iter().map(|request| pack::request(request, now_us)).collect();
        Self { script: &scripts.decide, arguments, form: Form::Any }
    }
}

impl Form {
    /// Reads the answer to these requests: the server's time, and a reply to each request.
    pub(crate) fn read(self, answer: &[u8], requests: &[Call<'_>]) -> Result<(u64, Vec<Reply>), BackendError> {
        let read = match (self, requests) {
            (Self::Windows(rules), [request]) => windows::read_one(answer, request, rules),
            (Self::Windows(rules), _) => windows::read(answer, requests, rules),
            _ => wire::read(answer, requests),
        };
        read.ok_or_else(unknown_shape)
    }
}

pub(crate) fn unknown_shape() -> BackendError {
    BackendError::new("redis: the script's reply has an unknown shape")
}
