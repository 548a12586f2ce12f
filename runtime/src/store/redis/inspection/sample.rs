//! Some of the keys with the prefix: whether they are this library's.

use std::time::{Duration, Instant};

use ::redis::{Value, cmd, from_redis_value};

use crate::error::BackendError;
use crate::store::redis::server::Server;
use crate::store::redis::stored::is_reserved;

/// How many keys of the server one question covers, in well below a millisecond.
const STEP: usize = 250;

/// The most questions, and the longest that they take together.
const MOST_STEPS: usize = 200;
const LONGEST: Duration = Duration::from_secs(2);

/// Some of the keys with the prefix.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// How many keys there are.
    pub(crate) keys: usize,
    /// How many of them are of another program.
    pub(crate) foreign: usize,
    /// One of those.
    pub(crate) example: Option<String>,
    /// Whether all keys of the server were looked at.
    pub(crate) is_whole: bool,
}

/// Looks at keys of the server for a while.
pub(super) async fn of(server: &Server, deadline: Duration) -> Result<Option<Sample>, BackendError> {
    let until = Instant::now() + LONGEST;
    let (mut sample, mut cursor) = (Sample::default(), "0".to_owned());
    for _ in 0..MOST_STEPS {
        let mut command = cmd("SCAN");
        command.arg(&cursor).arg("MATCH").arg(pattern(&server.prefix)).arg("COUNT").arg(STEP);
        let Ok(answer) = server.try_one(&command, deadline).await? else { return Ok(None) };
        let Some((next, keys)) = read(answer) else { return Ok(None) };
        for key in keys {
            sample.add(&server.prefix, &key);
        }
        if next == "0" {
            sample.is_whole = true;
            break;
        }
        if Instant::now() > until {
            break;
        }
        cursor = next;
    }
    Ok(Some(sample))
}

/// The prefix stands for itself in a pattern: none of its characters has a meaning there.
fn pattern(prefix: &str) -> String {
    format!("{prefix}:*")
}

fn read(answer: Value) -> Option<(String, Vec<Vec<u8>>)> {
    from_redis_value(answer).ok()
}

impl Sample {
    fn add(&mut self, prefix: &str, key: &[u8]) {
        self.keys += 1;
        if !str::from_utf8(key).is_ok_and(|key| is_own(prefix, key)) {
            self.foreign += 1;
            self.example.get_or_insert_with(|| String::from_utf8_lossy(key).into_owned());
        }
    }
}

/// Whether a key may be one of this library: the prefix, a policy with the layout of its tally, and a subject; or one that
/// is reserved.
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
