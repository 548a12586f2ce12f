//! The keys of a call of a script. A command writes them into its own buffer: a key is large, and would be moved.

use std::io::Write as _;

use ::redis::{Cmd, RedisWrite as _};

use crate::call::{Call, TallyId, TallyKey};

/// The keys by what they are of, with the prefix of the limiter.
#[derive(Clone, Copy)]
pub(crate) enum ScriptKeys<'a> {
    /// The tallies of requests and, behind them as paused.lua says, the pauses that the script looks for.
    Requests(&'a str, &'a [Call<'a>]),
    /// The tallies of a call.
    Tallies(&'a str, &'a Call<'a>),
    /// A tally, or a pause.
    One(&'a str, TallyId<'a>),
    Written(&'a [TallyKey]),
}

impl ScriptKeys<'_> {
    pub(super) fn number(self) -> usize {
        match self {
            Self::Requests(_, requests) => {
                let of = |request: &Call<'_>| request.tally_ids().count() + usize::from(request.pause().is_some());
                requests.iter().map(of).sum()
            }
            Self::Tallies(_, call) => call.tally_ids().count(),
            Self::One(..) => 1,
            Self::Written(keys) => keys.len(),
        }
    }

    /// Adds the keys to the arguments of a command.
    pub(super) fn add_to(self, command: &mut Cmd) {
        match self {
            Self::Requests(prefix, requests) => {
                let tallies = requests.iter().flat_map(|request| request.tally_ids());
                tallies.for_each(|id| add(command, prefix, id));
                let pauses = requests.iter().filter_map(|request| request.pause());
                pauses.for_each(|id| add(command, prefix, id));
            }
            Self::Tallies(prefix, call) => call.tally_ids().for_each(|id| add(command, prefix, id)),
            Self::One(prefix, id) => add(command, prefix, id),
            Self::Written(keys) => keys.iter().for_each(|key| _ = command.arg(key.as_str())),
        }
    }
}

fn add(command: &mut Cmd, prefix: &str, id: TallyId<'_>) {
    id.joined(prefix, |parts| {
        let mut argument = command.writer_for_next_arg();
        // Writing to memory cannot fail.
        for part in parts {
            _ = argument.write_all(part.as_bytes());
        }
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ::redis::Arg;
    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;
    use crate::policy::Policy;
    use crate::subject::Subject;

    const MINUTE: Duration = Duration::from_secs(60);

    fn added(keys: ScriptKeys<'_>) -> Vec<String> {
        let mut command = Cmd::new();
        keys.add_to(&mut command);
        assert_eq!(keys.number(), command.args_iter().count());
        let text = |argument: Arg<&[u8]>| match argument {
            Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => panic!("it is no key"),
        };
        command.args_iter().map(text).collect()
    }

    #[test]
    fn a_command_has_the_keys_of_all_tallies_and_then_of_the_pauses() {
        let rules = [Rule::sliding_window(9, MINUTE), Rule::sliding_window(9, MINUTE).counting("tokens")];
        let policy = Policy::builder("p").rules(rules).longest_pause(MINUTE).build().unwrap();
        let subjects = ["a", "{a}b", "a}b"].map(|text| [Subject::of(text).key(), Subject::of(text).key()]);
        let requests: Vec<_> =
            subjects.iter().map(|subjects| Call::new(&policy, subjects, CallOptions::PLAIN)).collect();
        let tallies: Vec<_> = requests.iter().flat_map(|request| request.keys("t")).collect();
        let pauses = requests.iter().filter_map(|request| Some(request.pause()?.key("t")));
        let all: Vec<_> = tallies.iter().copied().chain(pauses).collect();
        assert_eq!(all.len(), 9);
        assert_eq!(added(ScriptKeys::Requests("t", &requests)), added(ScriptKeys::Written(&all)));
        assert_eq!(added(ScriptKeys::Tallies("t", &requests[0])), added(ScriptKeys::Written(&tallies[..2])));
        let first = requests[0].tally_ids().next().unwrap();
        assert_eq!(added(ScriptKeys::One("t", first)), [tallies[0].as_str()]);
    }
}
