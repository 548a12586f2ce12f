//! The scripts that decide, refund, keep leases and ban.

pub(super) mod pack;
pub(super) mod plain;
pub(super) mod question;
pub(super) mod refund;
pub(super) mod run;
pub(super) mod windows;
pub(super) mod wire;
pub(super) mod work;

use std::sync::OnceLock;

use tallygate_lua as lua;

use crate::clock::Clock;
use crate::store::redis::script::run::Script;

/// The scripts of a server.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) decide: Script,
    pub(crate) refund: Script,
    pub(crate) lease: Script,
    pub(crate) ban: Script,
    clock: Clock,
    /// For each number of rules, once there is a call of it.
    one: [OnceLock<Script>; lua::MAX_PLAIN_RULES + 1],
    many: [OnceLock<Script>; lua::MAX_PLAIN_RULES + 1],
}

impl Scripts {
    pub(crate) fn new(clock: &Clock) -> Self {
        let script = |text| Script::new(text, clock.clone());
        Self {
            decide: script(lua::DECIDE),
            refund: script(lua::REFUND),
            lease: script(lua::LEASE),
            ban: script(lua::BAN),
            clock: clock.clone(),
            one: [const { OnceLock::new() }; lua::MAX_PLAIN_RULES + 1],
            many: [const { OnceLock::new() }; lua::MAX_PLAIN_RULES + 1],
        }
    }

    /// The script for one request of windows alone, of that many rules.
    pub(crate) fn one(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_PLAIN_RULES);
        self.one[rules].get_or_init(|| Script::unversioned(&lua::windows_alone(rules), self.clock.clone()))
    }

    /// The script for several such requests, of at most that many rules each.
    pub(crate) fn many(&self, rules: usize) -> &Script {
        let rules = rules.min(lua::MAX_PLAIN_RULES);
        self.many[rules].get_or_init(|| Script::unversioned(&lua::windows(rules), self.clock.clone()))
    }
}
