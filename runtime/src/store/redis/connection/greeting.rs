//! The answer of a server to `HELLO` says which kind of server it is. Each kind of address leads to one kind.
//!
//! A server of another kind may answer calls nevertheless. But a node of a cluster serves only some of the keys, and
//! two servers that know nothing of each other admit twice as many calls.

use std::borrow::Cow;
use std::collections::HashMap;

use ::redis::{RedisResult, Value, from_redis_value};

use super::address::Address;
use super::fault::Remedy;
use crate::error::BackendError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Standalone,
    Cluster,
    Sentinel,
}

/// What a server says of itself. A proxy may say less.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    mode: Option<Mode>,
    is_replica: bool,
}

impl Mode {
    fn read(text: &str) -> Option<Self> {
        match text {
            "standalone" => Some(Self::Standalone),
            "cluster" => Some(Self::Cluster),
            "sentinel" => Some(Self::Sentinel),
            _ => None,
        }
    }
}

impl Greeting {
    /// Reads the answer to `HELLO`. A refusal says nothing.
    pub(crate) fn read(answer: RedisResult<Value>) -> Self {
        let fields = answer.and_then(|answer| Ok(from_redis_value::<HashMap<String, Value>>(answer)?));
        let fields = fields.unwrap_or_default();
        let text = |name: &str| from_redis_value::<String>(fields.get(name)?.clone()).ok();
        let mode = text("mode").and_then(|mode| Mode::read(&mode));
        Self { mode, is_replica: text("role").is_some_and(|role| role == "replica") }
    }

    /// Finds out whether the address leads to a server of this kind.
    pub(crate) fn check_mode(&self, expected: Mode, address: &Address) -> Result<(), BackendError> {
        match self.mode {
            Some(mode) if mode != expected => {
                Err(BackendError::new(format!("redis at {address}: {}", other_kind(expected, mode, address))))
            }
            _ => Ok(()),
        }
    }

    /// Finds out whether a server of this kind may decide. Some replicas take writes and lose them.
    pub(crate) fn check_role(&self, mode: Mode, address: &Address) -> Result<(), BackendError> {
        // The nodes of a cluster say which of them decide.
        if self.is_replica && mode == Mode::Standalone {
            let remedy = Remedy::Primary.text(address);
            return Err(BackendError::away(format!("redis at {address}: {remedy}")));
        }
        Ok(())
    }
}

fn other_kind(expected: Mode, found: Mode, address: &Address) -> Cow<'static, str> {
    let scheme = address.scheme();
    match (found, expected) {
        (Mode::Cluster, _) => Remedy::Cluster.text(address),
        (Mode::Sentinel, _) => {
            let url = format!("{scheme}+sentinel://host:port/name");
            format!("the server is a sentinel: write `{url}` with the name of the primary").into()
        }
        (Mode::Standalone, Mode::Sentinel) => {
            format!("the server is no sentinel: begin the url with `{scheme}://`").into()
        }
        (Mode::Standalone, _) => Remedy::NoCluster.text(address),
    }
}

#[cfg(test)]
mod tests {
    use ::redis::parse_redis_value;

    use super::*;
    use crate::store::redis::connection::address::Destination;

    fn read(answer: &str) -> Greeting {
        Greeting::read(parse_redis_value(answer.as_bytes()).and_then(Value::extract_error))
    }

    fn address(url: &str) -> Address {
        let Ok(Destination::Server(address)) = Destination::parse(url) else { panic!("{url} is a server's") };
        address
    }

    fn refusal(mode: Mode, expected: Mode) -> Option<String> {
        let greeting = Greeting { mode: Some(mode), is_replica: false };
        greeting.check_mode(expected, &address("redis://h:1/")).err().map(|error| error.to_string())
    }

    #[test]
    fn a_server_of_another_kind_is_refused_with_the_scheme_that_leads_to_it() {
        let modes = [Mode::Standalone, Mode::Cluster, Mode::Sentinel];
        for (expected, mode) in modes.iter().flat_map(|expected| modes.iter().map(move |mode| (*expected, *mode))) {
            let refusal = refusal(mode, expected);
            assert_eq!(refusal.is_none(), mode == expected);
            let scheme = match mode {
                Mode::Standalone => "`redis://",
                Mode::Cluster => "`redis+cluster://",
                Mode::Sentinel => "`redis+sentinel://",
            };
            assert!(refusal.is_none_or(|text| text.starts_with("redis at h:1: ") && text.contains(scheme)));
        }
    }

    #[test]
    fn a_replica_is_refused_but_in_a_cluster() {
        let hello = "%2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$7\r\nreplica\r\n";
        let error = read(hello).check_role(Mode::Standalone, &address("redis://h:1/")).unwrap_err();
        assert!(error.to_string().ends_with("the url has to lead to the primary"), "{error}");
        let node = Greeting { mode: Some(Mode::Cluster), is_replica: true };
        assert!(node.check_role(Mode::Cluster, &address("redis://h:1/")).is_ok());
    }

    #[test]
    fn who_says_nothing_of_itself_is_not_judged() {
        for answer in [
            "-ERR unknown command 'HELLO'\r\n",
            "%1\r\n+proto\r\n:3\r\n",
            "%1\r\n+mode\r\n+proxy\r\n",
            "+OK\r\n",
            "_\r\n",
        ] {
            let greeting = read(answer);
            assert_eq!(greeting, Greeting { mode: None, is_replica: false }, "{answer}");
            assert!(greeting.check_mode(Mode::Standalone, &address("redis://h:1/")).is_ok());
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn the_scheme_of_an_encrypted_address_is_an_encrypted_one() {
        let node = Greeting { mode: Some(Mode::Cluster), is_replica: false };
        let error = node.check_mode(Mode::Standalone, &address("rediss://h:1/")).unwrap_err();
        assert!(error.to_string().ends_with("begin the url with `rediss+cluster://`"), "{error}");
    }
}
