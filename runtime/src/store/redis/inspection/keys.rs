//! Scans of keys, in steps that do not block a server for long: of the tallies of a policy, and of some keys with the
//! prefix.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, cmd, from_redis_value};

use crate::bounds::{WORD_BYTES, shown_word};
use crate::call::{TAG_BYTES, TAG_MARK};
use crate::error::BackendError;
use crate::store::answer::ScanStep;
use crate::store::redis::node::ClusterNode;
use crate::store::redis::script::run::NodeRole;
use crate::store::redis::server::Server;
use crate::store::redis::stored::is_reserved;
use crate::store::redis::{Deployment, Redis, until};
use crate::system::Instant;

/// How many entries of the server's table each step looks at. That takes the server some tenths of a millisecond at
/// most.
const COUNT: u32 = 250;

const LONGEST_WALK: Duration = Duration::from_secs(3_600);

/// The most keys of a server that are believed: the server says how many it has.
const MOST_KEYS: u64 = 1 << 40;

/// The most steps of a scan that begins where another one has ended. It does not know how many keys there are.
#[cfg(feature = "web")]
const MOST_STEPS_FROM_WITHIN: u64 = 1 << 24;

/// The most keys that a step finds, and the greatest length of a tally's key.
const MOST_KEYS_OF_STEP: usize = 100_000;
const KEY_BYTES: usize = 512;

/// A scan of the tallies of some rule groups, whatever their layout.
pub(crate) struct KeyScan {
    /// The primaries of a cluster; empty for a single server.
    members: Vec<Arc<ClusterNode>>,
    /// The index of the member that is being scanned.
    at: usize,
    /// Where the scan goes on; `None` before the first step on a server.
    place: Option<ScanPlace>,
    /// The start of the keys of each rule group, before the layout.
    starts: Vec<String>,
    is_done: bool,
    /// The deadline of the scan.
    until: Instant,
}

#[derive(Clone)]
struct ScanPlace {
    cursor: String,
    looked_at: u64,
    /// About how many entries the table has.
    places: u64,
    /// How many more steps may be made on this server.
    steps_left: u64,
}

impl Redis {
    /// Starts to scan the tallies of the rule groups whose segments begin with these names, before the layout.
    pub(crate) async fn scan(&self, prefix: &str, names: &[String]) -> Result<KeyScan, BackendError> {
        let members = match self.deployment() {
            Deployment::Server(_) => Vec::new(),
            Deployment::Cluster(cluster) => cluster.primaries(self.until()?).await?,
        };
        let starts = names.iter().map(|names| format!("{prefix}:{names}/")).collect();
        Ok(KeyScan { members, at: 0, place: None, starts, is_done: false, until: Instant::now() + LONGEST_WALK })
    }

    /// Makes one step; `None` at the end.
    pub(crate) async fn step(&self, scan: &mut KeyScan) -> Result<Option<ScanStep>, BackendError> {
        if scan.is_done {
            return Ok(None);
        }
        // The place is kept until the step is made, so that a failed step can be repeated.
        let place = match &scan.place {
            Some(place) => place.clone(),
            None => ScanPlace::start(self.ask_scanned(scan, &cmd("DBSIZE")).await?),
        };
        let mut command = cmd("SCAN");
        command.arg(&place.cursor).arg("MATCH").arg(scan.pattern()).arg("COUNT").arg(COUNT);
        let (cursor, keys): (String, Vec<Vec<u8>>) = self.ask_scanned(scan, &command).await?;
        scan.go_on(&place, cursor)?;
        // A key that is not UTF-8, or is longer than any of this library, is no tally.
        let keys = keys.into_iter().take(MOST_KEYS_OF_STEP).filter(|key| key.len() <= KEY_BYTES);
        let keys = keys.filter_map(|key| String::from_utf8(key).ok());
        let subjects = keys.filter_map(|key| scan.subject(&key)).collect();
        Ok(Some(ScanStep { subjects, progress: scan.progress() }))
    }

    async fn ask_scanned<T: FromRedisValue>(&self, scan: &KeyScan, command: &Cmd) -> Result<T, BackendError> {
        let until: Instant = until(self.setup.deadline)?;
        match (self.deployment(), scan.members.get(scan.at)) {
            (_, Some(member)) => member.node.server().query(command, until, NodeRole::Owner).await,
            (Deployment::Server(node), None) => node.server().query(command, until, NodeRole::Owner).await,
            (Deployment::Cluster(_), None) => Err(BackendError::away("redis: no node of the cluster is known")),
        }
    }
}

impl KeyScan {
    /// A pattern of all keys to find, and of few others: no pattern of Redis means one of several texts.
    fn pattern(&self) -> String {
        let common = self.starts.iter().map(String::as_str).reduce(common_start).unwrap_or_default();
        format!("{}*", escaped(common))
    }

    fn subject(&self, key: &str) -> Option<(usize, String)> {
        let mut found = self.starts.iter().enumerate().filter_map(|(group, start)| Some((group, subject(key, start)?)));
        found.next().map(|(group, subject)| (group, subject.to_owned()))
    }

    /// Returns which server comes next, and the cursor there; `None` at the end.
    #[cfg(feature = "web")]
    pub(crate) fn upcoming(&self) -> Option<(usize, u64)> {
        let cursor = self.place.as_ref().map_or(Some(0), |place| place.cursor.parse().ok());
        cursor.filter(|_| !self.is_done).map(|cursor| (self.at, cursor))
    }

    /// Goes on with this server, at this cursor; returns whether it exists.
    #[cfg(feature = "web")]
    pub(crate) fn go_to(&mut self, (at, cursor): (usize, u64)) -> bool {
        self.at = at;
        self.place = (cursor != 0).then(|| ScanPlace {
            cursor: cursor.to_string(),
            looked_at: 0,
            places: 1,
            steps_left: MOST_STEPS_FROM_WITHIN,
        });
        at < self.members.len().max(1)
    }

    /// Notes where the next step begins.
    ///
    /// # Errors
    ///
    /// The scan has no end.
    fn go_on(&mut self, place: &ScanPlace, cursor: String) -> Result<(), BackendError> {
        if cursor == "0" {
            self.place = None;
            self.at += 1;
            self.is_done = self.at >= self.members.len();
            return Ok(());
        }
        let goes_on = cursor != place.cursor && cursor.parse::<u64>().is_ok();
        let steps_left = place.steps_left.checked_sub(1).filter(|_| goes_on && Instant::now() < self.until);
        let steps_left = steps_left.ok_or_else(no_end)?;
        let looked_at = place.looked_at + u64::from(COUNT);
        self.place = Some(ScanPlace { cursor, looked_at, places: place.places, steps_left });
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "it is an estimate")]
    fn progress(&self) -> f64 {
        if self.is_done {
            return 1.0;
        }
        let here = self.place.as_ref().map_or(0.0, |place| place.looked_at as f64 / place.places as f64);
        (self.at as f64 + here.min(0.99)) / self.members.len().max(1) as f64
    }
}

impl ScanPlace {
    /// The server's table has at least as many entries as keys, and their number is a power of two.
    fn start(keys: u64) -> Self {
        let places = keys.clamp(1, MOST_KEYS).next_power_of_two();
        // While the table grows or shrinks, the server has two tables.
        let steps_left = 8 * places / u64::from(COUNT) + 64;
        Self { cursor: "0".to_owned(), looked_at: 0, places, steps_left }
    }
}

fn no_end() -> BackendError {
    BackendError::new(
        "redis: the walk over the keys has no end: it took more steps than the server has keys, more than an hour, or a step \
         without a place to go on",
    )
}

/// The subject of a key that begins with `start`: the text after the layout, or in a hash tag that is the key of a tally
/// of calls, or behind a tag of its slot.
fn subject<'k>(key: &'k str, start: &str) -> Option<&'k str> {
    let (_, subject) = key.strip_prefix(start)?.split_once(':')?;
    let in_tag = || {
        let (prefix, _names) = start.rsplit_once(':')?;
        let key_of_calls = subject.strip_prefix('{')?.strip_suffix('}')?;
        let (_, subject) = key_of_calls.strip_prefix(prefix)?.strip_prefix(':')?.split_once(':')?;
        Some(subject)
    };
    let behind_tag = || subject.strip_prefix('{')?.strip_prefix(TAG_MARK)?.get(TAG_BYTES..)?.strip_prefix('}');
    Some(in_tag().or_else(behind_tag).unwrap_or(subject))
}

fn common_start<'t>(one: &'t str, other: &str) -> &'t str {
    let differs = one.char_indices().zip(other.chars()).find(|((_, one), other)| one != other);
    let end = differs.map_or(one.len().min(other.len()), |((at, _), _)| at);
    one.get(..end).unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let escape = |character| match character {
        '*' | '?' | '[' | ']' | '\\' => format!("\\{character}"),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

/// The most steps for a sample, and the longest time for all of them.
const MOST_STEPS: usize = 200;
const LONGEST: Duration = Duration::from_secs(2);

/// How many keys with the prefix were found, and whose they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) keys: usize,
    /// How many of the keys another program has written.
    pub(crate) foreign: usize,
    /// One of the keys of other programs.
    pub(crate) example: Option<String>,
    /// Whether all keys of the server were looked at.
    pub(crate) is_whole: bool,
}

/// Looks at keys of the server for a while.
pub(super) async fn sample(server: &Server, deadline: Duration) -> Result<Option<Sample>, BackendError> {
    let until = Instant::now() + LONGEST;
    let (mut found, mut cursor) = (Sample::default(), "0".to_owned());
    // No character of a prefix has a meaning in a pattern.
    let pattern = format!("{}:*", server.setup.prefix);
    for _ in 0..MOST_STEPS {
        let mut command = cmd("SCAN");
        command.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(COUNT);
        let Ok(answer) = server.try_one(&command, deadline).await? else { return Ok(None) };
        let Ok((next, keys)) = from_redis_value::<(String, Vec<Vec<u8>>)>(answer) else { return Ok(None) };
        for key in keys.into_iter().take(MOST_KEYS_OF_STEP) {
            found.add(&server.setup.prefix, &key);
        }
        if next == "0" {
            found.is_whole = true;
            break;
        }
        if Instant::now() > until {
            break;
        }
        cursor = next;
    }
    Ok(Some(found))
}

impl Sample {
    fn add(&mut self, prefix: &str, key: &[u8]) {
        self.keys += 1;
        if !str::from_utf8(key).is_ok_and(|key| is_own(prefix, key)) {
            self.foreign += 1;
            self.example.get_or_insert_with(|| {
                let start = key.get(..WORD_BYTES).unwrap_or(key);
                shown_word(&String::from_utf8_lossy(start)).into_owned()
            });
        }
    }
}

/// Whether this library may have written a key. It consists of the prefix, a policy with the layout of its tally, and a
/// subject, or it is reserved.
fn is_own(prefix: &str, key: &str) -> bool {
    let Some(rest) = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(':')) else { return false };
    if rest.starts_with('!') {
        return is_reserved(prefix, key);
    }
    let is_printed = rest.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let segment = rest.split_once(':').map(|(segment, _)| segment);
    is_printed && segment.is_some_and(|segment| segment.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_stands_behind_the_layout() {
        assert_eq!(subject("t:p/w1d:sms:138", "t:p/"), Some("sms:138"));
        assert_eq!(subject("t:p/00c0ffee:", "t:p/"), Some(""));
        assert_eq!(subject("t:p/w1d", "t:p/"), None);
    }

    #[test]
    fn the_subject_of_a_unit_stands_in_the_hash_tag_that_is_the_key_of_its_calls() {
        assert_eq!(subject("t:p/leases:{t:p/w1m:sms:138}", "t:p/"), Some("sms:138"));
        assert_eq!(subject("t:p=01/w1d:{t:p/w1m:}", "t:p=01/"), Some(""));
        assert_eq!(subject("t:p/w1m:{acme}:zoe", "t:p/"), Some("{acme}:zoe"));
        assert_eq!(subject("t:p=01/w1d:{!a-9}a}b", "t:p=01/"), Some("a}b"));
    }

    #[test]
    fn a_pattern_stands_for_the_text_alone() {
        assert_eq!(escaped("tallygate:a%3Ab=01/w1d:"), "tallygate:a%3Ab=01/w1d:");
        assert_eq!(escaped(r"a*b?[c]\"), r"a\*b\?\[c\]\\");
    }

    #[test]
    fn several_groups_are_found_by_what_their_keys_have_in_common() {
        let starts = ["t:sms.send/", "t:sms.send=0a1b2c3d/", "t:sms.*/"].map(str::to_owned).to_vec();
        let scan = KeyScan { members: Vec::new(), at: 0, place: None, starts, is_done: false, until: Instant::now() };
        assert_eq!(scan.pattern(), "t:sms.*");
        assert_eq!(scan.subject("t:sms.send=0a1b2c3d/w1d:192.0.2.1"), Some((1, "192.0.2.1".to_owned())));
        assert_eq!(scan.subject("t:sms.sent/w1d:192.0.2.1"), None);
        assert_eq!((common_start("ab", "abc"), common_start("é", "è"), common_start("", "a")), ("ab", "", ""));
    }

    #[test]
    fn keys_of_another_program_are_told_from_tallies() {
        let mut sample = Sample::default();
        let own = ["t:sms.send/w1h:sms:138", "t:p/w1d:", "t:p=0a1b2c3d/leases:192.0.2.1", "t:!overrides"];
        let foreign = ["t:session:7", "t:cache", "t:!other", "t:\u{e9}/w:1"];
        for key in own.iter().chain(&foreign) {
            sample.add("t", key.as_bytes());
        }
        assert_eq!((sample.keys, sample.foreign, sample.example.as_deref()), (8, 4, Some("t:session:7")));
    }
}
