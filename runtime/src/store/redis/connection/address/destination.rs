//! The servers that a URL leads to.

use std::fmt;

use ::redis::{Client, ConnectionAddr, IntoConnectionInfo};

use super::location::{Host, Location, Target};
use super::{Address, ServerRole, check_supported, settings, unusable};
use crate::error::Error;
#[cfg(feature = "tls")]
use crate::store::redis::connection::tls::Tls;

#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Server(Address),
    /// The primary that the sentinels know by this name. The address has its login and its database.
    Primary {
        name: String,
        sentinels: Vec<Address>,
        address: Address,
    },
    /// The cluster of these nodes. The address is that of the first.
    Cluster {
        seeds: Vec<Host>,
        address: Address,
    },
}

impl Destination {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let Location { target, is_encrypted, login, database } = Location::parse(url)?;
        let login = settings(login, database);
        let address = |address: ConnectionAddr, role| {
            check_supported(&address)?;
            let info = address.into_connection_info().map_err(unusable)?;
            Address::new(info.set_redis_settings(login.clone()), role)
        };
        let server = |Host { name, port }, role| {
            let socket = if is_encrypted {
                ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None }
            } else {
                ConnectionAddr::Tcp(name, port)
            };
            address(socket, role)
        };
        match target {
            Target::Server(host) => server(host, ServerRole::Server).map(Self::Server),
            Target::Socket(path) => address(ConnectionAddr::Unix(path), ServerRole::Server).map(Self::Server),
            Target::Primary { name, first, others } => {
                let address = server(first.clone(), ServerRole::Primary)?;
                let hosts = [vec![first], others].concat();
                let sentinels = hosts.iter().map(|host| address.at_sentinel(host)).collect::<Result<_, _>>()?;
                Ok(Self::Primary { name, sentinels, address })
            }
            Target::Cluster { first, others } => {
                let address = server(first.clone(), ServerRole::Seed)?;
                Ok(Self::Cluster { seeds: [vec![first], others].concat(), address })
            }
        }
    }

    /// Returns the server that a client leads to.
    pub(crate) fn of_client(client: &Client) -> Result<Self, Error> {
        Address::new(client.get_connection_info().clone(), ServerRole::Server).map(Self::Server)
    }

    #[cfg(feature = "tls")]
    pub(crate) fn with_tls(self, tls: &Tls) -> Result<Self, Error> {
        match self {
            Self::Server(address) => address.with_tls(tls).map(Self::Server),
            Self::Primary { name, sentinels, address } => {
                let sentinels = sentinels.into_iter().map(|sentinel| sentinel.with_tls(tls));
                let sentinels = sentinels.collect::<Result<_, _>>()?;
                Ok(Self::Primary { name, sentinels, address: address.with_tls(tls)? })
            }
            Self::Cluster { seeds, address } => Ok(Self::Cluster { seeds, address: address.with_tls(tls)? }),
        }
    }

    /// The address of the server, or of one of several.
    pub(crate) fn address(&self) -> &Address {
        match self {
            Self::Server(address) | Self::Primary { address, .. } | Self::Cluster { address, .. } => address,
        }
    }
}

/// Shows host and port of one server, or the path of its socket.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}
