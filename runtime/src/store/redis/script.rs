//! The scripts that decide, refund, keep leases, ban and pause: their arguments and their answers.

pub(super) mod pack;
pub(super) mod run;
pub(super) mod windows;
pub(super) mod wire;
pub(super) mod work;

use std::sync::{Arc, OnceLock};

use tallygate_lua as lua;

use self::run::Script;
use self::windows::{is_plain, subjects_together};
use self::wire::Reply;
use self::work::Work;
use crate::call::Call;
use crate::clock::Clock;
use crate::error::BackendError;

#[derive(Debug)]
pub(crate) struct Scripts {
    /// The scripts that decide, and those that look for pauses before.
    deciding: DecidingScripts,
    pausable: DecidingScripts,
    pub(crate) refund: Script,
    pub(crate) lease: Script,
    pub(crate) ban: Script,
    pub(crate) pause: Script,
    pub(crate) probe: Script,
}

/// The scripts that decide requests. Each is made when a call first needs it.
#[derive(Debug)]
struct DecidingScripts {
    looks_for_pauses: bool,
    clock: Clock,
    any: OnceLock<Script>,
    /// The scripts for windows, by their number of rules.
    one: [OnceLock<Script>; lua::MAX_PLAIN_RULES + 1],
    many: [OnceLock<Script>; lua::MAX_PLAIN_RULES + 1],
    /// The scripts for several subjects. The first index is the number of subjects, the second one that of rules.
    together: [[OnceLock<Script>; lua::max_together_rules(2) + 1]; lua::MAX_TOGETHER_SUBJECTS + 1],
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
        let deciding = |looks_for_pauses| DecidingScripts {
            looks_for_pauses,
            clock: clock.clone(),
            any: OnceLock::new(),
            one: [const { OnceLock::new() }; lua::MAX_PLAIN_RULES + 1],
            many: [const { OnceLock::new() }; lua::MAX_PLAIN_RULES + 1],
            together: [const { [const { OnceLock::new() }; lua::max_together_rules(2) + 1] };
                lua::MAX_TOGETHER_SUBJECTS + 1],
        };
        Self {
            deciding: deciding(false),
            pausable: deciding(true),
            refund: script(lua::REFUND),
            lease: script(lua::LEASE),
            ban: script(lua::BAN),
            pause: script(lua::PAUSE),
            probe: script(lua::PROBE_PLACE),
        }
    }

    /// Returns the script that decides any requests whose subjects cannot be paused.
    #[cfg(feature = "admin")]
    pub(crate) fn decide(&self) -> &Script {
        self.deciding.any()
    }

    fn get(&self, id: ScriptId, requests: &[Call<'_>]) -> &Script {
        let scripts = if id.looks_for_pauses { &self.pausable } else { &self.deciding };
        match (id.kind, requests) {
            (ScriptKind::Windows(rules), [_]) => scripts.one(rules),
            (ScriptKind::Windows(rules), _) => scripts.many(rules),
            (ScriptKind::Together { subjects, rules }, _) => scripts.together(subjects, rules),
            (ScriptKind::General, _) => scripts.any(),
        }
    }
}

impl DecidingScripts {
    /// Returns the script for any requests.
    fn any(&self) -> &Script {
        self.any.get_or_init(|| Script::new(&self.text(lua::DECIDE.to_owned()), self.clock.clone()))
    }

    fn unversioned(&self, text: String) -> Script {
        Script::unversioned(&self.text(text), self.clock.clone())
    }

    fn text(&self, text: String) -> String {
        if self.looks_for_pauses { lua::pausable(&text) } else { text }
    }

    /// Returns the script for one request that has only sliding windows, at most this number of them.
    fn one(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_PLAIN_RULES);
        let text = if self.looks_for_pauses { lua::pausable_alone } else { lua::windows_alone };
        self.one[rules].get_or_init(|| Script::unversioned(&text(rules), self.clock.clone()))
    }

    /// Returns the script for several such requests, each with at most this number of rules.
    fn many(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_PLAIN_RULES);
        self.many[rules].get_or_init(|| self.unversioned(lua::windows(rules)))
    }

    /// Returns the script for requests of this number of subjects, each with at most this number of sliding windows.
    fn together(&self, subjects: usize, rules: usize) -> &Script {
        let subjects = subjects.min(lua::MAX_TOGETHER_SUBJECTS);
        let rules = rules.min(lua::max_together_rules(2));
        self.together[subjects][rules].get_or_init(|| self.unversioned(lua::windows_together(subjects, rules)))
    }
}

/// Which script decides requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptId {
    kind: ScriptKind,
    looks_for_pauses: bool,
}

/// The script for at most this number of windows, that for as many of each of so many subjects, or the general one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptKind {
    Windows(usize),
    Together { subjects: usize, rules: usize },
    General,
}

impl ScriptId {
    /// Returns the script that decides these requests in one call.
    pub(crate) fn of(requests: &[Call<'_>]) -> Self {
        let all = |kind: fn(Call<'_>) -> bool| !requests.is_empty() && requests.iter().all(|request| kind(*request));
        let kind = if all(is_plain) {
            ScriptKind::Windows(windows::rules(requests))
        } else if let Some(subjects) = subjects_together(requests) {
            ScriptKind::Together { subjects, rules: windows::rules(requests) }
        } else {
            ScriptKind::General
        };
        Self { kind, looks_for_pauses: looks_for_pauses(requests) }
    }

    pub(crate) fn work(self, request: Call<'_>) -> Work {
        match self.kind {
            ScriptKind::Windows(_) => Work::of_plain(request),
            ScriptKind::Together { .. } | ScriptKind::General => Work::of(request),
        }
    }

    /// Reads the answer to these requests: the server's time, and a reply to each request.
    pub(crate) fn read(self, answer: &[u8], requests: &[Call<'_>]) -> Result<(u64, Vec<Reply>), BackendError> {
        if self.looks_for_pauses
            && let Some(paused) = wire::read_paused(answer, requests)
        {
            return Ok(paused);
        }
        let read = match (self.kind, requests) {
            (ScriptKind::General, _) => wire::read(answer, requests),
            (ScriptKind::Windows(rules) | ScriptKind::Together { rules, .. }, [request]) => {
                windows::read_one(answer, request, rules)
            }
            (ScriptKind::Windows(rules) | ScriptKind::Together { rules, .. }, _) => {
                windows::read(answer, requests, rules)
            }
        };
        read.ok_or_else(unknown_shape)
    }
}

/// Whether the script is to look for the pauses of these requests. They are all alike in that.
fn looks_for_pauses(requests: &[Call<'_>]) -> bool {
    requests.first().is_some_and(|request| request.pause().is_some())
}

pub(crate) struct ScriptQuestion<'a> {
    pub(crate) script: &'a Script,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) id: ScriptId,
}

impl<'a> ScriptQuestion<'a> {
    /// Builds the question about these requests. `now_us` is the time of the server.
    pub(crate) fn about(requests: &[Call<'_>], scripts: &'a Scripts, now_us: u64) -> Self {
        let id = ScriptId::of(requests);
        let mut arguments = match id.kind {
            ScriptKind::Windows(rules) => windows::pack(requests, rules),
            ScriptKind::Together { rules, .. } => windows::pack_together(requests, rules),
            ScriptKind::General => requests.iter().map(|request| pack::request(request, now_us)).collect(),
        };
        // The script for one request knows how many there are.
        let is_for_one = matches!((id.kind, requests), (ScriptKind::Windows(_), [_]));
        if id.looks_for_pauses && !is_for_one {
            arguments.push(requests.len().to_string().into());
        }
        Self { script: scripts.get(id, requests), arguments, id }
    }
}

pub(crate) fn unknown_shape() -> BackendError {
    BackendError::new("redis: the script's reply has an unknown shape")
}
