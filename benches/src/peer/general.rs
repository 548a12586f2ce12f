//! The script of version 5 of the protocol, which decided all calls, with requests as it took them.

use tallygate::Policy;

use super::{Script, key_of, window_us};
use crate::load::Caller;
use crate::server::Server;

/// How many integers of a long log were read at once; more of a short one.
const SHORT_LOG: u64 = 256;

/// A policy of sliding windows, decided by that script.
#[derive(Clone)]
pub(crate) struct General {
    script: Script,
    request: Vec<u8>,
}

impl General {
    pub(crate) async fn load(server: &Server, policy: &Policy) -> Self {
        Self { script: Script::load(server, include_str!("decide.lua")).await, request: request(policy) }
    }

    /// Decides a call of each of these subjects in one call of the script, and returns how many were admitted.
    pub(crate) async fn call_all(&self, subjects: &[usize]) -> usize {
        let keys: Vec<_> = subjects.iter().map(|&subject| key_of(subject)).collect();
        let requests = vec![&self.request; subjects.len()];
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.script.sha1).arg(keys.len()).arg(keys).arg(5).arg(requests);
        let reply: Vec<u8> =
            command.query_async(&mut self.script.connection.clone()).await.expect("the server answers");
        // Of the three integers that answer a request, the second is -1 for an admitted call.
        reply.chunks_exact(3 * 7).filter(|answer| answer[7..14] == [0xFF; 7]).count()
    }
}

impl Caller for General {
    async fn call(&self, subject: usize) -> bool {
        self.call_all(&[subject]).await == 1
    }
}

/// A call of cost 1 of one subject.
fn request(policy: &Policy) -> Vec<u8> {
    let rules: Vec<_> = policy.rules().iter().map(|rule| [rule.count(), window_us(rule)]).collect();
    let greatest = |of: usize| rules.iter().map(|rule| rule[of]).max().expect("a rule");
    let (largest, reach_us) = (greatest(0), greatest(1));
    let read = if largest > SHORT_LOG { 1 } else { largest };
    let mut packed = vec![1, 0];
    packed.extend(integer(1));
    packed.push(u8::try_from(rules.len()).expect("few rules"));
    packed.extend([0; 4]);
    packed.extend([integer(largest), integer(reach_us)].concat());
    packed.extend(u16::try_from(read).expect("a short log").to_be_bytes());
    packed.extend(format!("-{}\0{}\0", read * 7, (reach_us + reach_us / 8) / 1_000).bytes());
    for [count, window_us] in rules {
        packed.push(b'w');
        packed.extend([integer(count), integer(window_us)].concat());
    }
    packed
}

/// Seven bytes, big endian.
fn integer(number: u64) -> [u8; 7] {
    let [_, bytes @ ..] = number.to_be_bytes();
    bytes
}
