//! What a node of a cluster answers in place of a reply, and what to do about it. Nothing was executed.

use std::error::Error as _;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::BackendError;
use crate::store::redis::connection::address::Host;

/// Where a request is to be sent next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// To the owner of the slot, which is another node.
    Moved(Host),
    /// To the node that the slot is on its way to, this once.
    Ask(Host),
    /// Again, in smaller parts: some of its keys are on their way, and some are not.
    TryAgain,
}

/// Whether the request has keys of which some are on their way, and some are not.
pub(crate) fn is_try_again(error: &BackendError) -> bool {
    server_error(error).is_some_and(|error| error.kind() == ServerErrorKind::TryAgain.into())
}

fn server_error(error: &BackendError) -> Option<&RedisError> {
    error.source()?.downcast_ref()
}

impl Redirect {
    /// Returns the redirect by the node that was reached at `asked`, if the error is one.
    pub(crate) fn of(error: &BackendError, asked: &Host) -> Option<Self> {
        let error = server_error(error)?;
        let host = || asked.redirected(error.redirect_node()?.0);
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => host().map(Self::Moved),
            ErrorKind::Server(ServerErrorKind::Ask) => host().map(Self::Ask),
            ErrorKind::Server(ServerErrorKind::TryAgain) => Some(Self::TryAgain),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ::redis::{RedisError, Value, parse_redis_value};

    use super::*;
    use crate::store::redis::connection::address::Destination;
    use crate::store::redis::connection::fault::answer_error;

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    fn read(answer: &str) -> Option<Redirect> {
        let Ok(Value::ServerError(error)) = parse_redis_value(format!("-{answer}\r\n").as_bytes()) else {
            panic!("{answer} is no error");
        };
        let destination = Destination::parse("redis+cluster://seed:1").unwrap();
        Redirect::of(&answer_error(destination.address(), &RedisError::from(error)), &host("seed", 1))
    }

    #[test]
    fn a_redirect_names_the_node_to_ask_and_without_a_host_one_on_the_same_host() {
        assert_eq!(read("MOVED 3999 10.0.0.1:6381"), Some(Redirect::Moved(host("10.0.0.1", 6_381))));
        assert_eq!(read("MOVED 3999 :6381"), Some(Redirect::Moved(host("seed", 6_381))));
        assert_eq!(read("ASK 3999 ::1:6381"), Some(Redirect::Ask(host("::1", 6_381))));
        assert_eq!(read("TRYAGAIN Multiple keys request during rehashing of slot"), Some(Redirect::TryAgain));
    }

    #[test]
    fn any_other_error_is_no_redirect() {
        for answer in [
            "MOVED",
            "CLUSTERDOWN Hash slot not served",
            "ASK 3999 nowhere",
            "WRONGTYPE of a key",
            "ERR of some kind",
            "LOADING",
            "CROSSSLOT",
        ] {
            assert_eq!(read(answer), None, "{answer}");
        }
        assert_eq!(Redirect::of(&BackendError::new("redis: no answer within the deadline"), &host("seed", 1)), None);
    }
}
