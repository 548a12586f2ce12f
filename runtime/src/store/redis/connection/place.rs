//! Where a server is.

use std::fmt;
use std::sync::Arc;

use super::address::Address;
use super::sentinel::Sentinels;
use crate::error::BackendError;

/// Where a server is: at an address, or where the sentinels say.
#[derive(Clone)]
pub(crate) enum ServerPlace {
    At(Box<Address>),
    Named(Arc<Sentinels>),
}

impl ServerPlace {
    /// Changes when the server is somewhere else.
    pub(crate) fn term(&self) -> u64 {
        match self {
            Self::At(_) => 0,
            Self::Named(sentinels) => sentinels.term(),
        }
    }

    /// Whether nobody has to be asked where it is.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::At(_))
    }

    /// The address, as far as it is known before the server is found.
    pub(crate) fn address(&self) -> &Address {
        match self {
            Self::At(address) => address,
            Self::Named(sentinels) => sentinels.unfound(),
        }
    }

    /// Returns the address, and the term for which it holds.
    pub(crate) async fn find(&self) -> Result<(Address, u64), BackendError> {
        match self {
            Self::At(address) => Ok((Address::clone(address), 0)),
            Self::Named(sentinels) => sentinels.primary().await,
        }
    }
}

/// Shows hosts and ports, or the path of a socket.
impl fmt::Display for ServerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Named(sentinels) => sentinels.fmt(f),
        }
    }
}
