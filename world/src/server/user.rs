//! Users, and what each may do.

use std::collections::{BTreeMap, BTreeSet};

use super::flavour::Flavour;
use super::glob;

/// The user of clients that have not logged in.
pub(crate) const DEFAULT_USER: &str = "default";

/// All users, by name.
#[derive(Clone, Debug)]
pub(crate) struct Users {
    by_name: BTreeMap<String, User>,
    /// Users of this server may use every channel from the start.
    has_open_channels: bool,
}

/// A user.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) is_enabled: bool,
    pub(crate) needs_no_password: bool,
    passwords: BTreeSet<Vec<u8>>,
    /// In the order in which they were given: the last one that concerns a command decides.
    commands: Vec<CommandRule>,
    keys: Vec<KeyPattern>,
    channels: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct CommandRule {
    is_allowed: bool,
    scope: Scope,
}

/// The commands that a rule is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scope {
    All,
    Category(String),
    Command(String),
    Subcommand(String, String),
}

#[derive(Clone, Debug)]
struct KeyPattern {
    pattern: Vec<u8>,
    access: Access,
}

/// How a command uses its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Access {
    pub(crate) const READ: Self = Self { reads: true, writes: false };
    pub(crate) const WRITE: Self = Self { reads: false, writes: true };
    pub(crate) const BOTH: Self = Self { reads: true, writes: true };
    /// It asks about the key, not for its value.
    pub(crate) const ABOUT: Self = Self { reads: false, writes: false };
}

impl Users {
    /// The user that everybody is at first may do everything.
    pub(crate) fn new(flavour: Flavour) -> Self {
        let mut default = User { is_enabled: true, needs_no_password: true, ..User::default() };
        default.allow(true, Scope::All);
        default.add_keys(b"*".to_vec(), Access::BOTH);
        default.channels.push(b"*".to_vec());
        Self {
            by_name: BTreeMap::from([(DEFAULT_USER.to_owned(), default)]),
            has_open_channels: flavour == Flavour::Redis62,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&User> {
        self.by_name.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns the user as it is, or a new one.
    pub(crate) fn get_or_new(&self, name: &str) -> User {
        self.by_name.get(name).cloned().unwrap_or_else(|| self.blank())
    }

    /// A user who may do nothing yet.
    pub(crate) fn blank(&self) -> User {
        let channels = if self.has_open_channels { vec![b"*".to_vec()] } else { Vec::new() };
        User { channels, ..User::default() }
    }

    pub(crate) fn put(&mut self, name: &str, user: User) {
        self.by_name.insert(name.to_owned(), user);
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.by_name.remove(name).is_some()
    }

    /// Lets everybody in, or only those who know the password of the default user.
    pub(crate) fn set_default_password(&mut self, password: &str) {
        let mut default = self.get_or_new(DEFAULT_USER);
        default.passwords.clear();
        default.needs_no_password = password.is_empty();
        if !password.is_empty() {
            default.passwords.insert(password.as_bytes().to_vec());
        }
        self.put(DEFAULT_USER, default);
    }

    /// Whether clients have to log in.
    pub(crate) fn ask_for_login(&self) -> bool {
        self.get(DEFAULT_USER).is_none_or(|default| !default.needs_no_password || !default.is_enabled)
    }

    /// Tells whether these are the name and the password of a user.
    pub(crate) fn accept(&self, name: &str, password: &[u8]) -> bool {
        self.get(name)
            .is_some_and(|user| user.is_enabled && (user.needs_no_password || user.passwords.contains(password)))
    }
}

impl User {
    /// Allows commands, or forbids them.
    pub(crate) fn allow(&mut self, is_allowed: bool, scope: Scope) {
        if scope == Scope::All {
            self.commands.clear();
        }
        self.commands.push(CommandRule { is_allowed, scope });
    }

    pub(crate) fn add_keys(&mut self, pattern: Vec<u8>, access: Access) {
        self.keys.push(KeyPattern { pattern, access });
    }

    pub(crate) fn may_use_all_keys(&self) -> bool {
        self.keys.iter().any(|allowed| allowed.pattern == b"*" && allowed.access == Access::BOTH)
    }

    pub(crate) fn may_use_all_channels(&self) -> bool {
        self.channels.iter().any(|pattern| pattern == b"*")
    }

    pub(crate) fn forget_keys(&mut self) {
        self.keys.clear();
    }

    pub(crate) fn add_channels(&mut self, pattern: Vec<u8>) {
        self.channels.push(pattern);
    }

    pub(crate) fn forget_channels(&mut self) {
        self.channels.clear();
    }

    pub(crate) fn add_password(&mut self, password: Vec<u8>) {
        self.passwords.insert(password);
        self.needs_no_password = false;
    }

    pub(crate) fn remove_password(&mut self, password: &[u8]) {
        self.passwords.remove(password);
    }

    pub(crate) fn forget_passwords(&mut self, needs_no_password: bool) {
        self.passwords.clear();
        self.needs_no_password = needs_no_password;
    }

    /// Whether a command may be sent, with its first argument, that is in these categories.
    pub(crate) fn may_run(&self, command: &str, subcommand: &[u8], is_in: impl Fn(&str) -> bool) -> bool {
        let concerns = |rule: &&CommandRule| match &rule.scope {
            Scope::All => true,
            Scope::Category(name) => is_in(name),
            Scope::Command(name) => name == command,
            Scope::Subcommand(name, first) => name == command && subcommand.eq_ignore_ascii_case(first.as_bytes()),
        };
        self.commands.iter().rev().find(concerns).is_some_and(|rule| rule.is_allowed)
    }

    pub(crate) fn may_use_key(&self, key: &[u8], access: Access) -> bool {
        self.keys.iter().any(|allowed| {
            let is_enough = (allowed.access.reads || !access.reads) && (allowed.access.writes || !access.writes);
            is_enough && glob::matches(&allowed.pattern, key)
        })
    }

    pub(crate) fn may_use_channel(&self, channel: &[u8]) -> bool {
        self.channels.iter().any(|pattern| glob::matches(pattern, channel))
    }
}
