//! What a server has decided, read from the calls of scripts and their replies as the guide describes them.

use std::collections::HashMap;
use std::sync::LazyLock;

use tallygate_lua as lua;

use super::resp;

/// What a script has done to one tally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A call was decided.
    Decided {
        /// The tallies of its subjects.
        keys: Vec<String>,
        /// What it weighs in each of them.
        costs: Vec<u64>,
        /// How much there has to be left for the call, of each tally: 1 where it pays afterwards.
        needs: Vec<u64>,
        /// Whether it is charged beyond the counts, because it was settled where it had cost nothing.
        is_late: bool,
        /// Whether an admitted call is counted.
        is_charged: bool,
        /// Whether a denial counts towards a ban.
        counts_denial: bool,
        /// The decision.
        verdict: Verdict,
        /// The server's time.
        at_us: u64,
        /// The time until the call is admitted, if it ever is.
        wait_us: i64,
    },
    /// A call was refunded or settled.
    Corrected {
        /// The tallies of its subjects.
        keys: Vec<String>,
        /// When it was admitted, by the server's clock.
        admitted_us: u64,
        /// What it weighed in each of them when it was admitted.
        costs: Vec<u64>,
        /// What it weighs from now on.
        used: Vec<u64>,
        /// How many tallies have changed.
        changed: i64,
    },
    /// A subject was banned or pardoned by hand.
    Banned {
        /// Its tally.
        key: String,
    },
    /// A subject was paused.
    Paused {
        /// The key of its pause.
        key: String,
        /// The server's time.
        at_us: u64,
        /// For how long it was to be paused.
        length_us: u64,
        /// When its pause ends, by the server's answer.
        ends_us: u64,
    },
    /// A call was not decided, because its subject is paused, or another call is tried after the pause.
    FoundPaused {
        /// The key of the pause.
        key: String,
        /// The server's time.
        at_us: u64,
        /// How long the pause still lasts, or how the place of the call that is tried stands.
        left_us: i64,
    },
    /// A call was to be tried after a pause, or has been.
    Probed {
        /// The key of the pause.
        key: String,
        /// The name of the call.
        name: u128,
        /// The server's time.
        at_us: u64,
        /// For how long it takes the place; 0 gives it back, and less opens the subject.
        length_us: i64,
        /// How the pause stood before; 0 if the subject was opened.
        left_us: i64,
    },
    /// Tallies or pauses were removed.
    Removed {
        /// Which ones.
        keys: Vec<String>,
    },
}

/// How a call was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was admitted.
    Admitted,
    /// A rule denied it.
    Denied(i64),
    /// Its subject is banned.
    Banned,
    /// It was not decided.
    Undecided,
}

/// The scripts of this version.
static KNOWN: LazyLock<Scripts> = LazyLock::new(Scripts::known);

/// What a server has done when it answered that to a client.
#[must_use]
pub fn deeds(asked: &[u8], answered: &[u8]) -> Vec<Deed> {
    KNOWN.deeds(asked, answered)
}

/// The scripts, by what clients send to call them.
struct Scripts(HashMap<Vec<u8>, (Script, Subjects)>);

#[derive(Clone, Copy)]
enum Script {
    Windows { rules: usize, form: Form },
    Decide,
    Refund,
    Ban,
    Pause,
    Probe,
}

/// Whether the subjects of requests may be paused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subjects {
    Plain,
    Pausable,
}

/// What a script for windows is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    One,
    /// Runs of equal requests.
    Many,
    /// Requests of so many subjects.
    Together(usize),
}

impl Scripts {
    fn known() -> Self {
        let windows = (1..=8).flat_map(|rules| {
            let script = |form| Script::Windows { rules, form };
            let alone = (lua::windows_alone(rules), script(Form::One));
            let several =
                (2..=lua::MAX_TOGETHER_SUBJECTS).filter(move |&count| rules <= lua::max_together_rules(count));
            let several = several.map(|count| (lua::windows_together(count, rules), script(Form::Together(count))));
            let others: Vec<_> = [(lua::windows(rules), script(Form::Many))].into_iter().chain(several).collect();
            let pausable = others.clone().into_iter().map(|(text, script)| (lua::pausable(&text), script));
            let pausable = pausable.chain([(lua::pausable_alone(rules), script(Form::One))]);
            with_subjects(Subjects::Plain, others.into_iter().chain([alone]))
                .chain(with_subjects(Subjects::Pausable, pausable))
        });
        let others = [
            (lua::DECIDE, Script::Decide),
            (lua::REFUND, Script::Refund),
            (lua::BAN, Script::Ban),
            (lua::PAUSE, Script::Pause),
            (lua::PROBE_PLACE, Script::Probe),
        ];
        let others = others.map(|(text, script)| (text.to_owned(), script));
        let others = with_subjects(Subjects::Plain, others);
        let decide = with_subjects(Subjects::Pausable, [(lua::pausable(lua::DECIDE), Script::Decide)]);
        let both = windows.chain(others).chain(decide).flat_map(|(text, script)| {
            let name = sha1_smol::Sha1::from(text.as_bytes()).digest().to_string();
            [(name.into_bytes(), script), (text.into_bytes(), script)]
        });
        Self(both.collect())
    }

    fn deeds(&self, asked: &[u8], answered: &[u8]) -> Vec<Deed> {
        let commands = resp::commands(asked);
        let answers = resp::answers(answered);
        let deeds = commands.iter().zip(answers).filter_map(|(words, answer)| match (words.as_slice(), answer) {
            ([b"UNLINK", keys @ ..], _) => Some(vec![Deed::Removed { keys: names(keys) }]),
            (_, Some(answer)) => self.call(words)?.deeds(answer),
            _ => None,
        });
        deeds.flatten().collect()
    }

    fn call<'a>(&self, words: &'a [&'a [u8]]) -> Option<Call<'a>> {
        let [name, script, keys, rest @ ..] = words else { return None };
        if !name.starts_with(b"EVAL") {
            return None;
        }
        let (script, subjects) = *self.0.get(*script)?;
        let keys: usize = std::str::from_utf8(keys).ok()?.parse().ok()?;
        let (keys, arguments) = rest.split_at_checked(keys)?;
        let call = Call { script, keys, arguments, pauses: &[] };
        if subjects == Subjects::Pausable { call.with_pauses() } else { Some(call) }
    }
}

fn with_subjects(
    subjects: Subjects,
    scripts: impl IntoIterator<Item = (String, Script)>,
) -> impl Iterator<Item = (String, (Script, Subjects))> {
    scripts.into_iter().map(move |(text, script)| (text, (script, subjects)))
}

/// A call of a script.
struct Call<'a> {
    script: Script,
    keys: &'a [&'a [u8]],
    arguments: &'a [&'a [u8]],
    /// The keys of the pauses that it looks for: one for each request, or none.
    pauses: &'a [&'a [u8]],
}

impl Call<'_> {
    /// Finds the pauses, as `paused.lua` describes them.
    fn with_pauses(self) -> Option<Self> {
        let (number, arguments) = match (self.script, self.arguments) {
            (Script::Windows { form: Form::One, .. }, arguments) => (1, arguments),
            (_, [arguments @ .., number]) => (usize::try_from(self::number(number)?).ok()?, arguments),
            _ => return None,
        };
        let (keys, pauses) = self.keys.split_at_checked(self.keys.len().checked_sub(number)?)?;
        Some(Self { keys, arguments, pauses, ..self })
    }

    fn deeds(&self, answer: &[u8]) -> Option<Vec<Deed>> {
        if let Some(paused) = self.found_paused(answer) {
            return Some(paused);
        }
        match self.script {
            Script::Windows { rules, form } => self.windows(answer, rules, form),
            Script::Decide => self.requests(answer),
            Script::Refund => {
                let [_, request, admitted, used @ ..] = self.arguments else { return None };
                let changed = Fields(answer).skip(lua::INTEGER_BYTES)?.integer()?;
                let (admitted_us, keys) = (number(admitted)?, self.names(0..self.keys.len()));
                let mut used: Vec<_> = used.iter().map(|used| number(used)).collect::<Option<_>>()?;
                // One stands for all.
                used.resize(keys.len(), *used.first()?);
                let costs = Fields(request).request()?.costs;
                Some(vec![Deed::Corrected { keys, admitted_us, costs, used, changed }])
            }
            Script::Ban => Some(self.names(0..1).into_iter().map(|key| Deed::Banned { key }).collect()),
            Script::Pause => {
                let [_, length, ..] = self.arguments else { return None };
                let (key, length_us, mut answer) = (self.names(0..1).pop()?, number(length)?, Fields(answer));
                // A length of zero only asks.
                if length_us == 0 {
                    return None;
                }
                let (at_us, left_us) = (answer.unsigned()?, answer.unsigned()?);
                Some(vec![Deed::Paused { key, at_us, length_us, ends_us: at_us + left_us }])
            }
            Script::Probe => {
                let [_, name, length] = self.arguments else { return None };
                let (key, mut answer) = (self.names(0..1).pop()?, Fields(answer));
                let name = name.iter().fold(0, |name, &byte| name << 8 | u128::from(byte));
                let length_us = std::str::from_utf8(length).ok()?.parse().ok()?;
                let (at_us, left_us) = (answer.unsigned()?, answer.integer()?);
                Some(vec![Deed::Probed { key, name, at_us, length_us, left_us }])
            }
        }
    }

    /// `None` if the answer does not say that a subject is paused.
    fn found_paused(&self, answer: &[u8]) -> Option<Vec<Deed>> {
        let mut answer = Fields(answer);
        if self.pauses.is_empty() || answer.integer()? != lua::PAUSED {
            return None;
        }
        let at_us = answer.unsigned()?;
        let lefts = self.pauses.iter().map(|_| answer.integer()).collect::<Option<Vec<_>>>()?;
        let paused = names(self.pauses).into_iter().zip(lefts).filter(|(_, left_us)| *left_us != 0);
        Some(paused.map(|(key, left_us)| Deed::FoundPaused { key, at_us, left_us }).collect())
    }

    fn windows(&self, answer: &[u8], rules: usize, form: Form) -> Option<Vec<Deed>> {
        let requests = self.window_requests(rules, form)?;
        let mut answer = Fields(answer);
        let is_entry = form != Form::Many && requests.len() == 1 && answer.0.len() == lua::ENTRY_BYTES;
        let at_us = answer.unsigned()?;
        let codes = if is_entry { &[lua::PLAIN_ADMITTED][..] } else { answer.take(requests.len())? };
        let mut key = 0;
        let mut deeds = Vec::new();
        for (costs, &code) in requests.into_iter().zip(codes) {
            let verdict = match code {
                lua::PLAIN_ADMITTED => Verdict::Admitted,
                lua::PLAIN_UNREADABLE | lua::PLAIN_ASK_AGAIN => Verdict::Undecided,
                rule => Verdict::Denied(rule.into()),
            };
            let wait_us = if matches!(verdict, Verdict::Denied(_)) { answer.integer()? } else { 0 };
            let keys = self.names(key..key + costs.len());
            key += costs.len();
            deeds.push(Deed::Decided {
                keys,
                needs: costs.clone(),
                costs,
                is_late: false,
                is_charged: true,
                counts_denial: true,
                verdict,
                at_us,
                wait_us,
            });
        }
        Some(deeds)
    }

    /// What each request of a script for windows costs on its subjects.
    fn window_requests(&self, rules: usize, form: Form) -> Option<Vec<Vec<u64>>> {
        const TERMS_BYTES: usize = lua::INTEGER_BYTES + 4 + 4;
        let subjects = if let Form::Together(subjects) = form { subjects } else { 1 };
        let weight = |fields: &[u8], subject| {
            let at = (5 + lua::INTEGER_BYTES) * rules * subjects + TERMS_BYTES * (subject + 1) - 4;
            Some(u64::from(u32::from_be_bytes(fields.get(at..at + 4)?.try_into().ok()?)))
        };
        let mut requests = Vec::new();
        for fields in self.arguments {
            let costs = (0..subjects).map(|subject| weight(fields, subject)).collect::<Option<Vec<_>>>()?;
            let [.., high, low, _] = **fields else { return None };
            let equal = if subjects == 1 { u16::from_be_bytes([high, low]) } else { 1 };
            requests.extend(std::iter::repeat_n(costs, equal.into()));
        }
        Some(requests)
    }

    fn requests(&self, answer: &[u8]) -> Option<Vec<Deed>> {
        let (mut answer, mut key, mut deeds) = (Fields(answer), 0, Vec::new());
        for request in self.arguments.get(1..)? {
            let Request { subjects, asked, costs, needs, rules } = Fields(request).request()?;
            let (at_us, code, wait_us) = (answer.unsigned()?, answer.integer()?, answer.integer()?);
            if asked & lua::PART != 0 {
                answer = answer.skip(lua::INTEGER_BYTES)?;
            }
            let is_decided = !matches!(code, lua::ASK_AGAIN | lua::UNREADABLE);
            if asked & lua::REPORT != 0 && is_decided {
                answer = answer.skip(lua::REPORT_FIELDS * rules * lua::INTEGER_BYTES)?;
            }
            let verdict = match code {
                lua::ADMITTED => Verdict::Admitted,
                lua::BANNED => Verdict::Banned,
                0.. => Verdict::Denied(code),
                _ => Verdict::Undecided,
            };
            let is_charged = asked & (lua::PEEK | lua::DENIAL) == 0 && costs.iter().any(|cost| *cost > 0);
            let keys = self.names(key..key + subjects);
            key += subjects;
            let counts_denial = asked & (lua::PEEK | lua::PROVISIONAL | lua::PART) == 0;
            let is_late = asked & lua::LATE != 0;
            deeds.push(Deed::Decided {
                keys,
                costs,
                needs,
                is_late,
                is_charged,
                counts_denial,
                verdict,
                at_us,
                wait_us,
            });
        }
        Some(deeds)
    }

    fn names(&self, keys: std::ops::Range<usize>) -> Vec<String> {
        names(self.keys.get(keys).unwrap_or_default())
    }
}

/// The head of a request, and how many rules it has.
struct Request {
    subjects: usize,
    asked: u8,
    /// For each subject.
    costs: Vec<u64>,
    needs: Vec<u64>,
    rules: usize,
}

/// Packed fields.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(mut self, bytes: usize) -> Option<Self> {
        self.take(bytes)?;
        Some(self)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn integer(&mut self) -> Option<i64> {
        let bytes = self.take(lua::INTEGER_BYTES)?;
        let sign = if bytes[0] >= 128 { -1 } else { 0 };
        Some(bytes.iter().fold(sign, |number, &byte| number << 8 | i64::from(byte)))
    }

    fn unsigned(&mut self) -> Option<u64> {
        self.integer()?.try_into().ok()
    }

    fn text(&mut self) -> Option<()> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        self.take(end + 1).map(drop)
    }

    fn request(mut self) -> Option<Request> {
        let (subjects, asked, cost) = (usize::from(self.byte()?), self.byte()?, self.unsigned()?);
        let (mut all, mut costs, mut needs) = (0, Vec::with_capacity(subjects), Vec::with_capacity(subjects));
        for _ in 0..subjects {
            let rules = usize::from(self.byte()?);
            all += rules;
            self.take(2)?;
            let denials = self.take(2)?;
            self.take(4 + lua::INTEGER_BYTES + 4 + 2)?;
            self.text()?;
            self.text()?;
            if denials != [0, 0] {
                self.take(2 * lua::INTEGER_BYTES)?;
            }
            let own = if asked & lua::UNITS != 0 { self.unsigned()? } else { cost };
            let is_later = own == lua::LATER;
            costs.push(if is_later { 0 } else { own });
            needs.push(if is_later { 1 } else { own });
            for _ in 0..rules {
                let kind = self.byte()?;
                self.take(lua::INTEGER_BYTES)?;
                let span = usize::try_from(self.integer()?).ok()?;
                match kind {
                    lua::TOKEN_BUCKET => self.take(3 * lua::INTEGER_BYTES)?,
                    lua::CRON => self.take(span * lua::INTEGER_BYTES)?,
                    lua::CONCURRENCY => self.take(lua::LEASE_NAME_BYTES)?,
                    _ => &[],
                };
            }
        }
        Some(Request { subjects, asked, costs, needs, rules: all })
    }
}

fn names(keys: &[&[u8]]) -> Vec<String> {
    keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
