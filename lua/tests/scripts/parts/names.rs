//! Understands enough of Lua to find the locals that a part shares with the text around it.

use std::collections::BTreeSet;
use std::mem;

const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or",
    "repeat", "return", "then", "true", "until", "while",
];
const GLOBALS: [&str; 9] = ["ARGV", "KEYS", "math", "redis", "string", "struct", "table", "tostring", "type"];

#[derive(Default)]
pub(crate) struct Names<'a> {
    /// Locals whose value the part uses.
    pub(crate) used: BTreeSet<&'a str>,
    /// Locals whose value it uses before any of its lines assigns to them.
    pub(crate) read: BTreeSet<&'a str>,
    /// Locals that it assigns to.
    pub(crate) assigned: BTreeSet<&'a str>,
    /// Locals that it declares for the text after it.
    pub(crate) declared: BTreeSet<&'a str>,
    /// Locals that it declares anywhere.
    pub(crate) own: BTreeSet<&'a str>,
    /// The locals that each open block declares.
    scopes: Vec<Vec<&'a str>>,
    /// The counters that the next block declares, because it is a loop.
    counters: Vec<&'a str>,
    /// The locals that this line assigns to.
    line: Vec<&'a str>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(part: &'a str) -> Self {
        let mut names = Self { scopes: vec![Vec::new()], ..Self::default() };
        let tokens = tokens(part);
        let mut at = 0;
        while let Some(&token) = tokens.get(at) {
            let follows_dot = at > 0 && tokens[at - 1] == ".";
            at += if follows_dot { 1 } else { names.take(token, &tokens[at + 1..]) };
        }
        names.declared.extend(names.scopes.concat());
        names
    }

    /// Notes a token and those after it that belong to it; returns how many these are together.
    fn take(&mut self, token: &'a str, after: &[&'a str]) -> usize {
        match token {
            "\n" => self.assigned.extend(self.line.drain(..)),
            "do" => self.scopes.push(mem::take(&mut self.counters)),
            "repeat" | "then" => self.scopes.push(Vec::new()),
            "else" => _ = self.scopes.pop().map(|_| self.scopes.push(Vec::new())),
            "elseif" | "end" | "until" => _ = self.scopes.pop(),
            "for" => {
                self.counters = list(after);
                self.own.extend(&self.counters);
                return 2 * self.counters.len();
            }
            "local" => {
                let declared = list(after);
                let tokens = 2 * declared.len();
                self.own.extend(&declared);
                self.scopes.last_mut().unwrap().extend(declared);
                return tokens;
            }
            name if is_name(name) => {
                let targets: Vec<_> = [name].into_iter().chain(more(after)).collect();
                let behind = 2 * targets.len() - 2;
                if after.get(behind) == Some(&"=") {
                    self.note_assigned(&targets);
                    return behind + 1;
                }
                if is_indexed_target(after) {
                    self.note_assigned(&[name]);
                }
                self.note_used(name);
            }
            _ => {}
        }
        1
    }

    fn note_assigned(&mut self, names: &[&'a str]) {
        for name in names {
            if !self.is_declared(name) {
                self.line.push(name);
            }
        }
    }

    fn note_used(&mut self, name: &'a str) {
        if !self.is_declared(name) {
            self.used.insert(name);
            if !self.assigned.contains(name) {
                self.read.insert(name);
            }
        }
    }

    fn is_declared(&self, name: &str) -> bool {
        GLOBALS.contains(&name) || self.scopes.iter().flatten().any(|declared| *declared == name)
    }
}

/// Returns the names of a list that begins here.
fn list<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    tokens.first().copied().into_iter().chain(more(&tokens[1..])).collect()
}

/// Returns the names of a list after its first.
fn more<'a>(tokens: &[&'a str]) -> impl Iterator<Item = &'a str> {
    tokens.chunks_exact(2).take_while(|pair| pair[0] == "," && is_name(pair[1])).map(|pair| pair[1])
}

/// Whether a name with these tokens after it is a table of which an element is set.
fn is_indexed_target(tokens: &[&str]) -> bool {
    let mut depth = 0;
    let end = tokens.iter().position(|token| {
        depth += i32::from(*token == "[") - i32::from(*token == "]");
        depth == 0
    });
    tokens.first() == Some(&"[") && end.is_some_and(|end| tokens.get(end + 1) == Some(&"="))
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && !KEYWORDS.contains(&token)
}

/// Returns the tokens of a part, without comments, strings, numbers and constants; each line ends with a newline.
fn tokens(part: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in part.lines() {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
            let (token, length) = match first {
                _ if rest.starts_with("--") => (None, rest.len()),
                '\'' => (None, 2 + rest[1..].find('\'').unwrap()),
                '$' => (None, 1 + rest.find('}').unwrap()),
                '0'..='9' => (None, rest.find(|character| !is_word(character)).unwrap_or(rest.len())),
                _ if is_word(first) => {
                    let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
                    (Some(&rest[..length]), length)
                }
                _ if rest.starts_with("==") || rest.starts_with("..") => (Some(&rest[..2]), 2),
                ' ' => (None, 1),
                _ => (Some(&rest[..1]), 1),
            };
            tokens.extend(token);
            rest = &rest[length..];
        }
        tokens.push("\n");
    }
    tokens
}
